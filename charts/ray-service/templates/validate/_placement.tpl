{{- define "ray-service.validatePlacement" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validatePlacement" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $model := .model }}
{{- range $model.workerGroups }}
{{- include "ray-service.validateGroup" (dict "v" $v "path" $path "group" .) }}
{{- end }}
{{- range include "ray-service.groupsOf" (dict "v" $v "groups" $model.workerGroups) | fromJsonArray }}
{{- if and $model.acceleratorType (not (get $v.workerGroups .).minReplicas) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "accelerator-type-zero" "words" (dict "path" $path "group" . "type" $model.acceleratorType)) }}
{{- end }}
{{- end }}
{{- range $name, $group := $v.workerGroups }}
{{- $fits := or $group.gpu.count (eq $model.accelerator.kind "cpu") }}
{{- if and (not $group.mountsWeights) (ternary (has $name $model.workerGroups) $fits (not (empty $model.workerGroups))) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "weights-unmounted" "words" (dict "path" $path "group" $name)) }}
{{- end }}
{{- end }}
{{- /* For every group, because the ingress of the model's requests may run on any of them. */}}
{{- include "ray-service.validateDrain" (dict "v" $v "path" $path "groups" (keys $v.workerGroups) "seconds" $model.gracefulShutdownSeconds) }}
{{- if eq $model.accelerator.kind "gpu" }}
{{- include "ray-service.validateParallelism" . }}
{{- end }}
{{- $groups := len $model.workerGroups }}
{{- if and (gt $groups 1) (ne $groups (int $model.engine.pipelineParallelSize)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "stage-groups" "words" (dict "path" $path "groups" $groups "stages" $model.engine.pipelineParallelSize)) }}
{{- end }}
{{- if lt $model.gpuFraction 1.0 }}
{{- if gt (mul $model.engine.tensorParallelSize $model.engine.pipelineParallelSize) 1 }}
{{- include "ray-service.refuse" (dict "v" $v "id" "fraction-parallel" "words" (dict "path" $path "fraction" $model.gpuFraction "ranks" (mul $model.engine.tensorParallelSize $model.engine.pipelineParallelSize))) }}
{{- end }}
{{- if gt $model.engine.gpuMemoryUtilization (mulf 0.92 $model.gpuFraction) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "fraction-utilization" "words" (dict "path" $path "utilization" $model.engine.gpuMemoryUtilization "fraction" $model.gpuFraction "part" (divf (floor (mulf 92 $model.gpuFraction)) 100))) }}
{{- end }}
{{- end }}
{{- range $model.workerGroups | default (keys $v.workerGroups) }}
{{- if and (hasSuffix ".shared" (get $v.workerGroups .).gpu.resource) (gt $model.engine.gpuMemoryUtilization 0.5) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "slice-utilization" "words" (dict "path" $path "utilization" $model.engine.gpuMemoryUtilization "group" .)) }}
{{- end }}
{{- end }}
{{- if and (eq $model.accelerator.kind "cpu") (or (get $model "acceleratorType") (lt $model.gpuFraction 1.0)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "cpu-accelerator" "words" (dict "path" $path)) }}
{{- end }}
{{- $offered := dict }}
{{- range $v.workerGroups }}
{{- $offered = mergeOverwrite $offered .rayResources }}
{{- end }}
{{- range $resource, $_ := $model.resources }}
{{- if not (hasKey $offered $resource) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "model-resource-unknown" "words" (dict "path" $path "resource" $resource "group" (first (keys $v.workerGroups | sortAlpha)))) }}
{{- end }}
{{- end }}
{{- end }}
