{{- /* repository@digest, or repository:tag without a digest. */ -}}
{{- define "gateway.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end }}
{{- end }}
