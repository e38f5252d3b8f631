{{- /* Paths of images and of pull secrets in the values, for the globals of a parent chart. */ -}}
{{- define "platform.pullPaths" -}}
{
  "images": [
    ["metrics", "adapter", "image", "repository"],
    ["doctor", "image", "repository"],
    ["metrics", "adapter", "extraContainers", "*", "image"],
    ["metrics", "adapter", "initContainers", "*", "image"],
    ["doctor", "extraContainers", "*", "image"],
    ["doctor", "initContainers", "*", "image"],
    ["probe", "image", "repository"],
    ["probe", "images"],
    ["intel", "image"],
    ["nvidia", "clusterPolicy", "operands", "*"]
  ],
  "secrets": [["metrics", "adapter", "imagePullSecrets"], ["doctor", "imagePullSecrets"], ["probe", "imagePullSecrets"]]
}
{{- end }}
