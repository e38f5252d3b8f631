{{- define "ray-service.validateGroups" -}}
{{- $v := . }}
{{- if not .workerGroups }}
{{- include "ray-service.refuse" (dict "v" $v "id" "worker-groups-missing" "words" dict) }}
{{- end }}
{{- include "ray-service.validateShm" (dict "v" $v "path" (list "head") "pod" .head) }}
{{- include "ray-service.validateRequest" (dict "v" $v "path" (list "head") "pod" .head) }}
{{- include "ray-service.validateRequest" (dict "v" $v "path" (list "autoscaler") "pod" .autoscaler) }}
{{- range $name, $group := .workerGroups }}
{{- include "ray-service.validateShm" (dict "v" $v "path" (list "workerGroups" $name) "pod" $group) }}
{{- include "ray-service.validateRequest" (dict "v" $v "path" (list "workerGroups" $name) "pod" $group) }}
{{- if and (gt $group.gpu.count 1.0) (or (contains "/mig-" $group.gpu.resource) (hasSuffix ".shared" $group.gpu.resource)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "gpu-share-count" "words" (dict "group" $name "count" $group.gpu.count "resource" $group.gpu.resource)) }}
{{- end }}
{{- if gt $group.minReplicas $group.maxReplicas }}
{{- include "ray-service.refuse" (dict "v" $v "id" "worker-replicas" "words" (dict "group" $name "min" $group.minReplicas "max" $group.maxReplicas)) }}
{{- end }}
{{- range list "idleTimeoutSeconds" "priority" }}
{{- if and (hasKey $group .) (not (get $v.autoscaler "declared")) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "autoscaler-needed" "words" (dict "group" $name "field" .)) }}
{{- end }}
{{- end }}
{{- if hasKey $group "priority" }}
{{- include "ray-service.refuse" (dict "v" $v "id" "priority-unknown" "words" (dict "group" $name "kuberay" $v.kuberay.version)) }}
{{- if semverCompare "<2.56.0" $v.ray.version }}
{{- include "ray-service.refuse" (dict "v" $v "id" "priority-ray" "words" (dict "group" $name "ray" $v.ray.version)) }}
{{- end }}
{{- end }}
{{- range $resource, $_ := $group.rayResources }}
{{- if or (hasSuffix "gpu" (lower $resource)) (has (lower $resource) (list "cpu" "memory" "object_store_memory")) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "resource-name" "words" (dict "group" $name "resource" $resource)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.validateShm" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateShm" "given" . "names" (list "v" "path" "pod")) -}}
{{- $pod := .pod }}
{{- if ge (include "ray-service.number" $pod.shmSize | float64) (include "ray-service.number" $pod.resources.limits.memory | float64) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "shm-memory" "words" (dict "path" .path "shm" $pod.shmSize "memory" $pod.resources.limits.memory)) }}
{{- end }}
{{- end }}

{{- /* Kubernetes refuses such a pod only when KubeRay creates it. */ -}}
{{- define "ray-service.validateRequest" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateRequest" "given" . "names" (list "v" "path" "pod")) -}}
{{- $sizes := .pod.resources }}
{{- with $sizes.requests.cpu }}
{{- if gt (include "ray-service.number" . | float64) (include "ray-service.number" $sizes.limits.cpu | float64) }}
{{- include "ray-service.refuse" (dict "v" $.v "id" "cpu-request" "words" (dict "path" $.path "request" . "cpu" $sizes.limits.cpu)) }}
{{- end }}
{{- end }}
{{- end }}
