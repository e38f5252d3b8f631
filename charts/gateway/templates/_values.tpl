{{- /* Defaults that follow from other values. Takes the values, and changes them. */ -}}
{{- define "gateway.derive" -}}
{{- range $name, $model := .models }}
{{- $_ := set $model "path" ($model.path | default (printf "/%s" $name)) }}
{{- end }}
{{- end }}
