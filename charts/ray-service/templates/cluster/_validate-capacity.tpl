{{- /* What is held at minReplicas has to fit in what the groups may grow to, or replicas wait for ever. A model that
       names no group counts for none here. */ -}}
{{- define "ray-service.validateCapacity" -}}
{{- $v := . }}
{{- $gpus := dict }}
{{- $cpus := 0.0 }}
{{- range .serve.applications }}
{{- $cpus = addf $cpus .ingress.minReplicas }}
{{- range .models }}
{{- $stages := int .engine.pipelineParallelSize }}
{{- $ranks := mul .engine.tensorParallelSize $stages }}
{{- $onCpu := eq .accelerator.kind "cpu" }}
{{- $cpus = addf $cpus (mulf .autoscaling.minReplicas (ternary (max 1 $ranks) .replicaCpus $onCpu)) }}
{{- if not $onCpu }}
{{- $share := divf (mulf .autoscaling.minReplicas $ranks .gpuFraction) (max 1 (len .workerGroups)) }}
{{- range .workerGroups }}
{{- $_ := set $gpus . (addf (get $gpus . | default 0.0) $share) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range .serve.customApplications }}
{{- range .deployments }}
{{- $cpus = addf $cpus (mulf .minReplicas .cpus) }}
{{- if .workerGroup }}
{{- $_ := set $gpus .workerGroup (addf (get $gpus .workerGroup | default 0.0) (mulf .minReplicas .gpus)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $cores := 0.0 }}
{{- range $name, $group := .workerGroups }}
{{- $pods := mulf (ternary .maxReplicas .minReplicas $v.autoscaler.enabled) .numOfHosts }}
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
