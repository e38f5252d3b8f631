{{- /* Paths of images and of pull secrets in the values, for the globals of a parent chart. */ -}}
{{- define "ray-service.pullPaths" -}}
{
  "images": [
    ["image", "repository"],
    ["workerGroups", "*", "image", "repository"],
    ["weights", "download", "image"],
    ["head", "extraContainers", "*", "image"],
    ["head", "initContainers", "*", "image"],
    ["workerGroups", "*", "extraContainers", "*", "image"],
    ["workerGroups", "*", "initContainers", "*", "image"],
    ["weights", "download", "extraContainers", "*", "image"],
    ["weights", "download", "initContainers", "*", "image"],
    ["weights", "images", "*", "reference"],
    ["test", "image"]
  ],
  "secrets": [["imagePullSecrets"]]
}
{{- end }}
