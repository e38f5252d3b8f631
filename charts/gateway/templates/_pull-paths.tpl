{{- /* Paths of images and of pull secrets in the values, for the globals of a parent chart. */ -}}
{{- define "gateway.pullPaths" -}}
{
  "images": [
    ["image", "repository"],
    ["extraContainers", "*", "image"],
    ["initContainers", "*", "image"]
  ],
  "secrets": [["imagePullSecrets"]]
}
{{- end }}
