{{- /* How ranks are placed on pods: a pod has `gpu.count` GPUs, and a bundle of a placement group never spans two pods. */ -}}
{{- define "ray-service.validateParallelism" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateParallelism" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $model := .model }}
{{- $tp := int $model.engine.tensorParallelSize }}
{{- $pp := int $model.engine.pipelineParallelSize }}
{{- $named := include "ray-service.groupsOf" (dict "v" $v "groups" $model.workerGroups) | fromJsonArray }}
{{- $groups := len $named }}
{{- $largest := -1 }}
{{- $where := "" }}
{{- range $name, $group := $v.workerGroups }}
{{- if and (or (not $groups) (has $name $named)) (gt (int $group.gpu.count) $largest) }}
{{- $largest = int $group.gpu.count }}
{{- $where = $name }}
{{- end }}
{{- end }}
{{- if and (not $groups) (gt $tp $largest) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tensor-parallel-pod" "words" (dict "path" $path "group" $where "tp" $tp "gpus" $largest)) }}
{{- end }}
{{- range $named }}
{{- $gpus := int (get $v.workerGroups .).gpu.count }}
{{- $words := dict "path" $path "group" . "tp" $tp "gpus" $gpus }}
{{- if gt $tp $gpus }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tensor-parallel-pod" "words" $words) }}
{{- end }}
{{- $several := or (gt $groups 1) (gt (mul $tp $pp) $gpus) }}
{{- if and (gt $pp 1) $several (mod $gpus $tp) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tensor-parallel-divisor" "words" $words) }}
{{- end }}
{{- end }}
{{- if and (eq $model.placementStrategy "STRICT_PACK") (or (gt $groups 1) (gt (mul $tp $pp) $largest)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "strict-pack" "words" (dict "path" $path "ranks" (mul $tp $pp) "gpus" $largest)) }}
{{- end }}
{{- end }}

{{- /* Data parallel ranks: what Ray Serve LLM 2.60 refuses or ignores, and what was not tested. */ -}}
{{- define "ray-service.validateRanks" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateRanks" "given" . "names" (list "v" "path" "model" "models")) -}}
{{- $model := .model }}
{{- $ranks := get $model.engine "dataParallelSize" | default 1 | int }}
{{- $why := "" }}
{{- if gt .models 1 }}
{{- $why = "build_dp_openai_app takes one model; give this one an application of its own" }}
{{- else if ne $model.placementStrategy "PACK" }}
{{- $why = printf "Ray packs the ranks of a group and ignores placementStrategy %s; remove it" $model.placementStrategy }}
{{- else if gt (int $model.engine.pipelineParallelSize) 1 }}
{{- $why = "pipeline stages within ranks were not tested; set pipelineParallelSize to 1" }}
{{- else if eq $model.autoscaling.policy.kind "EngineQueue" }}
{{- $why = "the policy EngineQueue was not tested with groups of replicas; use OngoingRequests" }}
{{- else if lt $model.gpuFraction 1.0 }}
{{- $why = "a rank has whole GPUs; set gpuFraction to 1" }}
{{- else if $model.aliases }}
{{- $why = "ranks were not tested with aliases; remove aliases" }}
{{- end }}
{{- if and $why (gt $ranks 1) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "data-parallel" "words" (dict "path" .path "ranks" $ranks "why" $why)) }}
{{- end }}
{{- end }}

{{- define "ray-service.validateDrain" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateDrain" "given" . "names" (list "v" "path" "groups" "seconds")) -}}
{{- $v := .v }}
{{- $need := .seconds }}
{{- if gt (float64 $need) (float64 $v.upgrade.deletionDelaySeconds) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "deletion-delay" "words" (dict "path" .path "need" $need "have" $v.upgrade.deletionDelaySeconds)) }}
{{- end }}
{{- range .groups | sortAlpha }}
{{- $drain := sub (get $v.workerGroups .).terminationGracePeriodSeconds 10 }}
{{- if lt (float64 $drain) (float64 $need) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "drain-time" "words" (dict "path" $.path "group" . "need" $need "have" $drain "grace" (ceil $need | add 10))) }}
{{- end }}
{{- end }}
{{- end }}
