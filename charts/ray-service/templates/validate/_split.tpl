{{- /* How ranks lie over pods: KubeRay's pods hold `gpu.count` cards each, and a bundle never spans two of them.
       Takes (list values path model). */ -}}
{{- define "ray-service.validateSplit" -}}
{{- $v := index . 0 }}
{{- $path := index . 1 }}
{{- $model := index . 2 }}
{{- $tp := int $model.engine.tensorParallelSize }}
{{- $pp := int $model.engine.pipelineParallelSize }}
{{- $groups := len $model.workerGroups }}
{{- $largest := 0 }}
{{- range $name, $group := $v.workerGroups }}
{{- if or (not $groups) (has $name $model.workerGroups) }}
{{- $largest = max $largest (int $group.gpu.count) }}
{{- end }}
{{- end }}
{{- range $model.workerGroups }}
{{- $cards := int (get $v.workerGroups .).gpu.count }}
{{- $words := dict "path" $path "group" . "tp" $tp "cards" $cards }}
{{- if gt $tp $cards }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tensor-parallel-pod" "words" $words) }}
{{- end }}
{{- $several := or (gt $groups 1) (gt (mul $tp $pp) $cards) }}
{{- if and (gt $pp 1) $several (mod $cards $tp) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tensor-parallel-straddles" "words" $words) }}
{{- end }}
{{- end }}
{{- if and (eq $model.placementStrategy "STRICT_PACK") (or (gt $groups 1) (gt (mul $tp $pp) $largest)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "strict-pack" "words" (dict "path" $path "ranks" (mul $tp $pp) "cards" $largest)) }}
{{- end }}
{{- end }}

{{- /* Takes (list values path groups seconds). */ -}}
{{- define "ray-service.validateDrain" -}}
{{- $v := index . 0 }}
{{- $need := index . 3 }}
{{- if gt (float64 $need) (float64 $v.upgrade.deletionDelaySeconds) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "deletion-delay" "words" (dict "path" (index . 1) "need" $need "have" $v.upgrade.deletionDelaySeconds)) }}
{{- end }}
{{- range index . 2 | sortAlpha }}
{{- $drain := sub (get $v.workerGroups .).terminationGracePeriodSeconds 10 }}
{{- if lt (float64 $drain) (float64 $need) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "drain-time" "words" (dict "path" (index $ 1) "group" . "need" $need "have" $drain "grace" (ceil $need | add 10))) }}
{{- end }}
{{- end }}
{{- end }}
