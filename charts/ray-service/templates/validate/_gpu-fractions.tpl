{{- /* Ray does not split a fraction over two GPUs: three replicas of 0.6 need three GPUs. Takes (list values path group share replicas). */ -}}
{{- define "ray-service.validateGpuFraction" -}}
{{- $v := index . 0 }}
{{- $share := index . 3 }}
{{- $replicas := index . 4 }}
{{- if and (gt $share 0.0) (lt $share 1.0) }}
{{- $group := get $v.workerGroups (index . 2) }}
{{- $gpus := mulf (include "ray-service.maxPods" (list $v $group) | float64) $group.gpu.count }}
{{- $room := mulf (divf 1 $share | floor) $gpus }}
{{- if gt $replicas $room }}
{{- include "ray-service.refuse" (dict "v" $v "id" "fraction-replicas" "words" (dict "path" (index . 1) "group" (index . 2) "replicas" $replicas "share" $share "gpus" $gpus "room" $room)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes (list values group). */ -}}
{{- define "ray-service.maxPods" -}}
{{- $group := index . 1 }}
{{- mulf (ternary $group.maxReplicas $group.minReplicas (index . 0).autoscaler.enabled) $group.numOfHosts }}
{{- end }}
