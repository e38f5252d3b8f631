{{- /* Head pod: control processes only. It offers no CPU and no GPU to Ray, so no replica runs on it. */ -}}
{{- define "ray-service.head" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.head" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $head := $v.head }}
rayStartParams:
  num-cpus: "0"
  num-gpus: "0"
  dashboard-host: 0.0.0.0
  object-store-memory: {{ include "ray-service.objectStore" $head }}
template:
  {{- include "ray-service.patchedPod" (dict "root" $root "path" "head" "pod" $head "text" (include "ray-service.headTemplate" .)) | nindent 2 }}
{{- end }}
