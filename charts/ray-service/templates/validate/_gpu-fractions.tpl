{{- /* Ray does not split a fraction over two GPUs: three replicas of 0.6 need three GPUs. */ -}}
{{- define "ray-service.validateGpuFraction" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateGpuFraction" "given" . "names" (list "v" "path" "group" "share" "replicas")) -}}
{{- $v := .v }}
{{- $share := .share }}
{{- $replicas := .replicas }}
{{- if and (gt $share 0.0) (lt $share 1.0) }}
{{- $group := get $v.workerGroups .group }}
{{- $gpus := mulf (include "ray-service.maxPods" (dict "v" $v "group" $group) | float64) $group.gpu.count }}
{{- $room := mulf (divf 1 $share | floor) $gpus }}
{{- if gt $replicas $room }}
{{- include "ray-service.refuse" (dict "v" $v "id" "fraction-replicas" "words" (dict "path" .path "group" .group "replicas" $replicas "share" $share "gpus" $gpus "room" $room)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.maxPods" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.maxPods" "given" . "names" (list "v" "group")) -}}
{{- $group := .group }}
{{- mulf (ternary $group.maxReplicas $group.minReplicas .v.autoscaler.enabled) $group.numOfHosts }}
{{- end }}
