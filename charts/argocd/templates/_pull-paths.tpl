{{- /* Paths of images and of pull secrets in the values: the chart has no pods. */ -}}
{{- define "argocd.pullPaths" -}}
{"images": [], "secrets": []}
{{- end }}
