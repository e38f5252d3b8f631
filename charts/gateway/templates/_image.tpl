{{- /* repository@digest, or repository:tag; the digest wins. */ -}}
{{- define "gateway.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end }}
{{- end }}
