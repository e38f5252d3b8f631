{{- /* Maps with the models as `/v1/models` lists them. Takes (dict root v errors tasks). */ -}}

{{- define "gateway.modelObject" -}}
{"id":"{{ . }}","object":"model","created":0,"owned_by":"rayhelm"}
{{- end }}

{{- define "gateway.mapObjects" -}}
{{- range $id, $model := .v.models }}
{{ $id }} {{ include "gateway.modelObject" $id }}
{{- range $model.aliases }}
{{ . }} {{ include "gateway.modelObject" . }}
{{- end }}
{{- end }}
{{- end }}

{{- /* In parts of 100 models: HAProxy cuts a line of a map at 16 KiB, and 100 of the longest names are shorter. */ -}}
{{- define "gateway.listParts" -}}
{{- include "gateway.arguments" (dict "template" "gateway.listParts" "given" . "names" (list "v" "tenant")) -}}
{{ chunk 100 (include "gateway.namesOf" . | fromJsonArray) | toJson }}
{{- end }}

{{- define "gateway.mapLists" -}}
{{- range $name, $tenant := .v.tenants }}
{{- range $part, $models := include "gateway.listParts" (dict "v" $.v "tenant" $tenant) | fromJsonArray }}
{{- $objects := list }}
{{- range $models }}
{{- $objects = append $objects (include "gateway.modelObject" .) }}
{{- end }}
{{ $name }}:{{ $part }} {{ if $part }},{{ end }}{{ join "," $objects }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The response with all models of the tenant. */ -}}
{{- define "gateway.listModels" }}
{{- $parts := 1 }}
{{- range .v.tenants }}
{{- $parts = max $parts (include "gateway.listParts" (dict "v" $.v "tenant" .) | fromJsonArray | len) }}
{{- end }}
{{- $all := "var(txn.list0)" }}
  # The list of models of the tenant.
  acl is_model_list var(txn.body_kind) -m str list
{{- range $part := until (int $parts) }}
  http-request set-var(txn.list{{ $part }}) var(txn.tenant),concat(:{{ $part }}),map_str(lists.map) if !is_json !has_path_model is_model_list
{{- if $part }}
{{- $all = printf "%s,concat(,txn.list%d)" $all $part }}
{{- end }}
{{- end }}
{{- $list := printf "'{\"object\":\"list\",\"data\":[%%[%s]]}'" $all }}
  http-request return status 200 content-type application/json lf-string {{ $list }} if !is_json !has_path_model is_model_list
{{- end }}
