{{- /* What replicas hold, at their fewest and at their most, against what the groups may grow to: what has no room waits
       for ever. A model that names no group counts for none here. */ -}}
{{- define "ray-service.validateCapacity" -}}
{{- $v := . }}
{{- $held := include "ray-service.held" . | fromJson }}
{{- $cores := 0.0 }}
{{- range $name, $group := .workerGroups }}
{{- $pods := include "ray-service.mostPods" (list $v $group) | float64 }}
{{- $cores = addf $cores (mulf $pods (include "ray-service.number" .resources.limits.cpu | float64)) }}
{{- $have := mulf $pods .gpu.count }}
{{- $field := ternary "maxReplicas" "minReplicas" $v.autoscaler.enabled }}
{{- $each := max 1 (mul .numOfHosts .gpu.count) }}
{{- $need := get $held.fewest $name | default 0.0 }}
{{- if gt $need (addf $have 1e-9) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-gpu" "words" (dict "group" $name "have" $have "need" $need "field" $field "replicas" (divf $need $each | ceil))) }}
{{- end }}
{{- $used := get $held.most $name | default 0.0 }}
{{- if gt $used (addf $have 1e-9) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-limit" "words" (dict "group" $name "have" $have "need" $used "field" $field "replicas" (divf $used $each | ceil))) }}
{{- end }}
{{- $always := mulf $group.minReplicas .numOfHosts .gpu.count }}
{{- if and (not $held.anywhere) .gpu.count (ge (subf $always $used) (float64 $each)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-idle" "words" (dict "group" $name "always" $always "used" $used "replicas" (divf $used $each | ceil))) }}
{{- end }}
{{- end }}
{{- if gt $held.cpus $cores }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-cpu" "words" (dict "have" $cores "need" $held.cpus "group" (first (keys .workerGroups | sortAlpha)))) }}
{{- end }}
{{- end }}

{{- /* GPUs by group at minReplicas and at maxReplicas, CPUs at minReplicas, and whether something may run anywhere. */ -}}
{{- define "ray-service.held" -}}
{{- $v := . }}
{{- $held := dict "fewest" dict "most" dict "cpus" 0.0 "anywhere" false }}
{{- range $app, $_ := .serve.applications }}
{{- $_ := set $held "cpus" (addf $held.cpus .ingress.minReplicas) }}
{{- range $id, $_ := .models }}
{{- $ranks := mul .engine.tensorParallelSize .engine.pipelineParallelSize }}
{{- $onCpu := eq .accelerator.kind "cpu" }}
{{- /* Ray adds the replica's own CPUs to the first of its bundles. */}}
{{- $_ := set $held "cpus" (addf $held.cpus (mulf .autoscaling.minReplicas (addf .replicaCpus (ternary $ranks 0 $onCpu)))) }}
{{- if not $onCpu }}
{{- $path := list "serve" "applications" $app "models" $id }}
{{- include "ray-service.hold" (list $v $held $path .workerGroups (mulf $ranks .gpuFraction) .gpuFraction .autoscaling) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $app, $_ := .serve.customApplications }}
{{- range $id, $_ := .deployments }}
{{- $_ := set $held "cpus" (addf $held.cpus (mulf .minReplicas .cpus)) }}
{{- $path := list "serve" "customApplications" $app "deployments" $id }}
{{- include "ray-service.hold" (list $v $held $path (compact (list .workerGroup)) .gpus .gpus .) }}
{{- end }}
{{- end }}
{{- $held | toJson }}
{{- end }}

{{- /* Adds one deployment. Takes (list values held path groups gpusOfAReplica share bounds). */ -}}
{{- define "ray-service.hold" -}}
{{- $v := index . 0 }}
{{- $held := index . 1 }}
{{- $groups := index . 3 }}
{{- $bounds := index . 6 }}
{{- $part := divf (index . 4) (max 1 (len $groups)) }}
{{- range $name := $groups }}
{{- $_ := set $held.fewest $name (addf (get $held.fewest $name | default 0.0) (mulf $bounds.minReplicas $part)) }}
{{- $_ := set $held.most $name (addf (get $held.most $name | default 0.0) (mulf $bounds.maxReplicas $part)) }}
{{- include "ray-service.validateShares" (list $v (index $ 2) $name (index $ 5) $bounds.maxReplicas) }}
{{- end }}
{{- if and (not $groups) (index . 4) }}
{{- $_ := set $held "anywhere" true }}
{{- end }}
{{- end }}
