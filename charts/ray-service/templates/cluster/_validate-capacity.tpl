{{- /* What is held at minReplicas has to fit in what the groups may grow to, or replicas wait for ever. A model that
       names no group counts for none here. */ -}}
{{- define "ray-service.validateCapacity" -}}
{{- $v := . }}
{{- $gpus := dict }}
{{- $cpus := 0.0 }}
{{- range $app, $_ := .serve.applications }}
{{- $cpus = addf $cpus .ingress.minReplicas }}
{{- range $id, $_ := .models }}
{{- $stages := int .engine.pipelineParallelSize }}
{{- $ranks := mul .engine.tensorParallelSize $stages }}
{{- $onCpu := eq .accelerator.kind "cpu" }}
{{- /* Ray adds the replica's own CPUs to the first of its bundles. */}}
{{- $cpus = addf $cpus (mulf .autoscaling.minReplicas (addf .replicaCpus (ternary $ranks 0 $onCpu))) }}
{{- if not $onCpu }}
{{- $share := divf (mulf .autoscaling.minReplicas $ranks .gpuFraction) (max 1 (len .workerGroups)) }}
{{- $model := . }}
{{- range .workerGroups }}
{{- $_ := set $gpus . (addf (get $gpus . | default 0.0) $share) }}
{{- include "ray-service.validateShares" (list $v (printf "serve.applications.%s.models.%s" $app $id) . $model.gpuFraction $model.autoscaling.minReplicas) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $app, $_ := .serve.customApplications }}
{{- range $id, $_ := .deployments }}
{{- $cpus = addf $cpus (mulf .minReplicas .cpus) }}
{{- if .workerGroup }}
{{- $_ := set $gpus .workerGroup (addf (get $gpus .workerGroup | default 0.0) (mulf .minReplicas .gpus)) }}
{{- include "ray-service.validateShares" (list $v (printf "serve.customApplications.%s.deployments.%s" $app $id) .workerGroup .gpus .minReplicas) }}
{{- end }}
{{- end }}
{{- end }}
{{- $cores := 0.0 }}
{{- range $name, $group := .workerGroups }}
{{- $pods := include "ray-service.mostPods" (list $v $group) | float64 }}
{{- $cores = addf $cores (mulf $pods (include "ray-service.number" .resources.cpu | float64)) }}
{{- $have := mulf $pods .gpu.count }}
{{- $need := get $gpus $name | default 0.0 }}
{{- if gt $need $have }}
{{- $replicas := divf $need (max 1 (mul .numOfHosts .gpu.count)) | ceil }}
{{- include "ray-service.refuse" (list $v "capacity-gpu" (dict "group" $name "have" $have "need" $need "replicas" $replicas)) }}
{{- end }}
{{- end }}
{{- if gt $cpus $cores }}
{{- include "ray-service.refuse" (list $v "capacity-cpu" (dict "have" $cores "need" $cpus "group" (first (keys .workerGroups | sortAlpha)))) }}
{{- end }}
{{- end }}

{{- /* A share is never split over two cards: three times 0.6 is three cards. Takes (list values path group share replicas). */ -}}
{{- define "ray-service.validateShares" -}}
{{- $v := index . 0 }}
{{- $share := index . 3 }}
{{- $replicas := index . 4 }}
{{- if and (gt $share 0.0) (lt $share 1.0) }}
{{- $group := get $v.workerGroups (index . 2) }}
{{- $cards := mulf (include "ray-service.mostPods" (list $v $group) | float64) $group.gpu.count }}
{{- $room := mulf (divf 1 $share | floor) $cards }}
{{- if gt $replicas $room }}
{{- include "ray-service.refuse" (list $v "fraction-replicas" (dict "path" (index . 1) "group" (index . 2) "replicas" $replicas "share" $share "cards" $cards "room" $room)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes (list values group). */ -}}
{{- define "ray-service.mostPods" -}}
{{- $group := index . 1 }}
{{- mulf (ternary $group.maxReplicas $group.minReplicas (index . 0).autoscaler.enabled) $group.numOfHosts }}
{{- end }}
