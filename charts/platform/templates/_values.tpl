{{- /* Defaults that follow from other values: none. */ -}}
{{- define "platform.derive" -}}
{{- end }}
