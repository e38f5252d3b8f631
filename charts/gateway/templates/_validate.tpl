{{- define "gateway.validate" -}}{{- end }}
