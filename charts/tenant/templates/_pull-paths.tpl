{{- /* Paths of images and of pull secrets in the values: the chart has no pods. */ -}}
{{- define "tenant.pullPaths" -}}
{"images": [], "secrets": []}
{{- end }}
