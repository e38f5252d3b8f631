{{- /* A worker group. */ -}}
{{- define "ray-service.workerGroup" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.workerGroup" "given" . "names" (list "root" "v" "name" "group")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $name := .name }}
{{- $group := .group }}
{{- if not $v.autoscaler.enabled }}
replicas: {{ int $group.minReplicas }}
{{- end }}
minReplicas: {{ int $group.minReplicas }}
maxReplicas: {{ int (ternary $group.maxReplicas $group.minReplicas $v.autoscaler.enabled) }}
numOfHosts: {{ int $group.numOfHosts }}
# Without this field the operator adds it and owns the whole list, so the next server-side apply (Helm 4) would
# conflict.
scaleStrategy: {}
{{- if and $v.autoscaler.enabled (hasKey $group "idleTimeoutSeconds") }}
idleTimeoutSeconds: {{ int $group.idleTimeoutSeconds }}
{{- end }}
{{- if and $v.autoscaler.enabled (hasKey $group "priority") }}
priority: {{ int $group.priority }}
{{- end }}
rayStartParams:
  object-store-memory: {{ include "ray-service.objectStore" $group }}
# Explicit, because KubeRay counts GPUs of some resource names only, and the autoscaler needs the count before a pod
# exists.
resources:
  GPU: {{ int $group.gpu.count | quote }}
  {{ include "ray-service.groupResource" $name }}: "1"
  {{- range $resource, $count := $group.rayResources }}
  {{ $resource | quote }}: {{ int $count | quote }}
  {{- end }}
template:
  {{- include "ray-service.patchedPod" (dict "root" $root "path" (printf "workerGroups.%s" $name) "pod" $group "text" (include "ray-service.workerTemplate" .)) | nindent 2 }}
{{- end }}
