{{- /* The tables that the rules look into, one line for each entry. Takes (dict root v errors operations). */ -}}

{{- /* Paths of a model below its own path: its task's, or its own where it is custom. Takes (dict all model). */ -}}
{{- define "gateway.operationsOf" -}}
{{- $operations := get .all.operations .model.task | default dict }}
{{- range $path, $own := .model.operations }}
{{- $_ := set $operations $path (dict "method" $own.method "body" "stream") }}
{{- end }}
{{- $operations | toJson }}
{{- end }}

{{- /* method, body, path upstream, and the model where the address says it. */ -}}
{{- define "gateway.mapRoutes" -}}
/v1/models GET list /v1/models
{{- $shared := dict }}
{{- range $id, $model := .v.models }}
/v1/models/{{ $id }} GET object /v1/models {{ $id }}
{{ $model.path }}/v1/models GET list /v1/models {{ $id }}
{{ $model.path }}/v1/models/{{ $id }} GET object /v1/models {{ $id }}
{{- range $path, $operation := include "gateway.operationsOf" (dict "all" $ "model" $model) | fromJson }}
{{ $model.path }}{{ $path }} {{ $operation.method }} {{ $operation.body }} {{ $path }} {{ $id }}
{{- if eq $operation.body "json" }}
{{- $_ := set $shared $path $operation }}
{{- end }}
{{- end }}
{{- end }}
{{- range $path, $operation := $shared }}
{{ $path }} {{ $operation.method }} json {{ $path }}
{{- end }}
{{- end }}

{{- define "gateway.mapOperations" -}}
{{- range $id, $model := .v.models }}
{{- range $path, $_ := include "gateway.operationsOf" (dict "all" $ "model" $model) | fromJson }}
{{ $id }}:{{ $path }} yes
{{- end }}
{{- end }}
{{- end }}

{{- define "gateway.modelObject" -}}
{"id":"{{ . }}","object":"model","created":0,"owned_by":"rayhelm"}
{{- end }}

{{- define "gateway.mapObjects" -}}
{{- range $id, $_ := .v.models }}
{{ $id }} {{ include "gateway.modelObject" $id }}
{{- end }}
{{- end }}

{{- /* In parts, because HAProxy reads no line of a map beyond 16 KiB: a hundred of the longest names are shorter. */ -}}
{{- define "gateway.listParts" -}}
{{ chunk 100 (.models | uniq | sortAlpha) | toJson }}
{{- end }}

{{- define "gateway.mapLists" -}}
{{- range $name, $tenant := .v.tenants }}
{{- range $part, $models := include "gateway.listParts" $tenant | fromJsonArray }}
{{- $objects := list }}
{{- range $models }}
{{- $objects = append $objects (include "gateway.modelObject" .) }}
{{- end }}
{{ $name }}:{{ $part }} {{ if $part }},{{ end }}{{ join "," $objects }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The version that has all the weight, or a star. */ -}}
{{- define "gateway.onlyVersion" -}}
{{- $only := "*" }}
{{- range $name, $version := .versions }}
{{- if eq (int $version.weight) 100 }}
{{- $only = $name }}
{{- end }}
{{- end }}
{{- $only }}
{{- end }}

{{- define "gateway.mapAccess" -}}
{{- range $name, $tenant := .v.tenants }}
{{- range $tenant.models | uniq }}
{{ $name }}:{{ . }} {{ get $tenant.pinnedVersions . | default (include "gateway.onlyVersion" (get $.v.models .)) }}
{{- end }}
{{- end }}
{{- end }}
