{{- /* What runs before and beside Ray in the pods of a worker group. */ -}}
{{- define "ray-service.workerInitContainers" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.workerInitContainers" "given" . "names" (list "root" "v" "name" "group")) -}}
{{- if and .v.weights.enabled .v.weights.download.enabled .group.mountsWeights }}
{{- include "ray-service.waitForWeights" . }}
{{- end }}
{{- if .v.logs.stdout.enabled }}
{{- $image := include "ray-service.groupImage" (dict "image" .v.image "override" .group.image) }}
{{ include "ray-service.logContainer" (dict "root" .root "v" .v "image" $image "role" "worker") | trim }}
{{- end }}
{{- end }}
