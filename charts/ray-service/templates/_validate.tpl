{{- define "ray-service.validate" -}}
{{- end }}
