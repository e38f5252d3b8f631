{{- /* Further names of a model. The gateway looks up the model behind one; the body stays as it is, and the ingress of rayhelm
       in the Serve application replaces the name there. */ -}}

{{- define "gateway.mapAliases" -}}
{{- range $id, $model := .v.models }}
{{- range $model.aliases }}
{{ . }} {{ $id }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gateway.hasAliases" -}}
{{- range .models }}
{{- if .aliases }}
yes
{{- end }}
{{- end }}
{{- end }}

{{- define "gateway.replaceAlias" }}
{{- if include "gateway.hasAliases" .v | trim }}
  http-request set-var(txn.alias_of) var(txn.requested_model),map_str(aliases.map)
  http-request set-var(txn.model) var(txn.alias_of) if { var(txn.alias_of) -m found }
{{- end }}
{{- end }}

{{- /* Models of a tenant and their aliases, as JSON. Takes (dict v tenant). */ -}}
{{- define "gateway.namesOf" -}}
{{- include "gateway.arguments" (dict "template" "gateway.namesOf" "given" . "names" (list "v" "tenant")) -}}
{{- $models := .v.models }}
{{- $names := .tenant.models }}
{{- range .tenant.models | uniq }}
{{- $names = concat $names (get (get $models . | default dict) "aliases" | default list) }}
{{- end }}
{{- $names | uniq | sortAlpha | toJson }}
{{- end }}
