{{- define "ray-service.validateGroups" -}}
{{- $v := . }}
{{- if not .workerGroups }}
{{- include "ray-service.refuse" (dict "v" $v "id" "worker-groups-missing" "words" dict) }}
{{- end }}
{{- include "ray-service.validateShm" (list $v (list "head") .head) }}
{{- include "ray-service.validateRequest" (list $v (list "head") .head) }}
{{- include "ray-service.validateRequest" (list $v (list "autoscaler") .autoscaler) }}
{{- range $name, $group := .workerGroups }}
{{- include "ray-service.validateShm" (list $v (list "workerGroups" $name) $group) }}
{{- include "ray-service.validateRequest" (list $v (list "workerGroups" $name) $group) }}
{{- if and (gt $group.gpu.count 1.0) (or (contains "/mig-" $group.gpu.resource) (hasSuffix ".shared" $group.gpu.resource)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "gpu-share-count" "words" (dict "group" $name "count" $group.gpu.count "resource" $group.gpu.resource)) }}
{{- end }}
{{- if gt $group.minReplicas $group.maxReplicas }}
{{- include "ray-service.refuse" (dict "v" $v "id" "worker-replicas" "words" (dict "group" $name "min" $group.minReplicas "max" $group.maxReplicas)) }}
{{- end }}
{{- range list "idleTimeoutSeconds" "priority" }}
{{- if and (hasKey $group .) (not $v.autoscaler.enabled) }}
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

{{- /* Takes (list values path pod). */ -}}
{{- define "ray-service.validateShm" -}}
{{- $pod := index . 2 }}
{{- if ge (include "ray-service.number" $pod.shmSize | float64) (include "ray-service.number" $pod.resources.limits.memory | float64) }}
{{- include "ray-service.refuse" (dict "v" (index . 0) "id" "shm-memory" "words" (dict "path" (index . 1) "shm" $pod.shmSize "memory" $pod.resources.limits.memory)) }}
{{- end }}
{{- end }}

{{- /* Kubernetes refuses such a pod only when KubeRay creates it. Takes (list values path pod). */ -}}
{{- define "ray-service.validateRequest" -}}
{{- $sizes := (index . 2).resources }}
{{- with $sizes.requests.cpu }}
{{- if gt (include "ray-service.number" . | float64) (include "ray-service.number" $sizes.limits.cpu | float64) }}
{{- include "ray-service.refuse" (dict "v" (index $ 0) "id" "cpu-request" "words" (dict "path" (index $ 1) "request" . "cpu" $sizes.limits.cpu)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A Kubernetes quantity as a plain number. */ -}}
{{- define "ray-service.number" -}}
{{- $text := kindIs "string" . | ternary . (toJson .) }}
{{- $number := regexFind "^[0-9.]+" $text | float64 }}
{{- $unit := regexFind "[A-Za-z]+$" $text }}
{{- $unit = $unit | default "one" }}
{{- $units := dict "one" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 }}
{{- mulf $number (get $units $unit) | toJson }}
{{- end }}
