{{- /* Compare what replicas need, at minReplicas and at maxReplicas, with the limits of the groups: a replica
       without room waits forever. */ -}}
{{- define "ray-service.validateCapacity" -}}
{{- $v := . }}
{{- $needed := include "ray-service.neededResources" . | fromJson }}
{{- $cores := 0.0 }}
{{- range $name, $group := .workerGroups }}
{{- $pods := include "ray-service.maxPods" (dict "v" $v "group" $group) | float64 }}
{{- $cores = addf $cores (mulf $pods (include "ray-service.number" .resources.limits.cpu | float64)) }}
{{- $have := mulf $pods .gpu.count }}
{{- $field := ternary "maxReplicas" "minReplicas" (get $v.autoscaler "declared") }}
{{- $each := max 1 (mul .numOfHosts .gpu.count) }}
{{- $need := get $needed.fewest $name | default 0.0 }}
{{- $used := get $needed.most $name | default 0.0 }}
{{- $enough := divf (maxf $need $used) $each | ceil }}
{{- if gt $need (addf $have 1e-9) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-gpu" "words" (dict "group" $name "have" $have "need" $need "field" $field "replicas" $enough)) }}
{{- end }}
{{- if gt $used (addf $have 1e-9) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-limit" "words" (dict "group" $name "have" $have "need" $used "field" $field "replicas" $enough)) }}
{{- end }}
{{- $always := mulf $group.minReplicas .numOfHosts .gpu.count }}
{{- if and (not $needed.anywhere.most) .gpu.count (ge (subf $always $used) (float64 $each)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-idle" "words" (dict "group" $name "always" $always "used" $used "replicas" (divf $used $each | ceil))) }}
{{- end }}
{{- end }}
{{- include "ray-service.validateAnyGroup" (dict "v" $v "needed" $needed) }}
{{- include "ray-service.validateIngressRoom" . }}
{{- if gt $needed.cpus $cores }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-cpu" "words" (dict "have" $cores "need" $needed.cpus "group" (first (keys .workerGroups | sortAlpha)))) }}
{{- end }}
{{- end }}

{{- /* GPUs by group, and of deployments that may run on any of several groups, at minReplicas and at maxReplicas; CPUs at
       minReplicas. Takes the values. */ -}}
{{- define "ray-service.neededResources" -}}
{{- $v := . }}
{{- $needed := dict "fewest" dict "most" dict "cpus" 0.0 "anywhere" (dict "fewest" 0.0 "most" 0.0) }}
{{- range $app, $_ := .serve.applications }}
{{- $_ := set $needed "cpus" (addf $needed.cpus .ingress.minReplicas) }}
{{- range $id, $_ := .models }}
{{- $bounds := include "ray-service.replicaBounds" . | fromJson }}
{{- $ranks := mul .engine.tensorParallelSize .engine.pipelineParallelSize (get .engine "dataParallelSize" | default 1) }}
{{- $onCpu := eq .accelerator.kind "cpu" }}
{{- /* Ray adds the replica's own CPUs to its first bundle. */}}
{{- $_ := set $needed "cpus" (addf $needed.cpus (mulf $bounds.minReplicas (addf (mulf .replicaCpus (get .engine "dataParallelSize" | default 1)) (ternary $ranks 0 $onCpu)))) }}
{{- if not $onCpu }}
{{- $path := list "serve" "applications" $app "models" $id }}
{{- include "ray-service.addNeeded" (dict "v" $v "needed" $needed "path" $path "groups" .workerGroups "gpus" (mulf $ranks .gpuFraction) "share" .gpuFraction "bounds" $bounds) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $app, $_ := .serve.customApplications }}
{{- range $id, $_ := .deployments }}
{{- $_ := set $needed "cpus" (addf $needed.cpus (mulf .minReplicas .cpus)) }}
{{- $path := list "serve" "customApplications" $app "deployments" $id }}
{{- include "ray-service.addNeeded" (dict "v" $v "needed" $needed "path" $path "groups" (compact (list .workerGroup)) "gpus" .gpus "share" .gpus "bounds" .) }}
{{- end }}
{{- end }}
{{- $needed | toJson }}
{{- end }}

{{- /* Replicas of a model with an engine: those that compute prompts have their own. Takes the model. */ -}}
{{- define "ray-service.replicaBounds" -}}
{{- $bounds := pick .autoscaling "minReplicas" "maxReplicas" }}
{{- with get . "prefill" }}
{{- $bounds = dict
      "minReplicas" (addf $bounds.minReplicas .autoscaling.minReplicas)
      "maxReplicas" (addf $bounds.maxReplicas .autoscaling.maxReplicas) }}
{{- end }}
{{- $bounds | toJson }}
{{- end }}

{{- /* Add one deployment. */ -}}
{{- define "ray-service.addNeeded" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.addNeeded" "given" . "names" (list "v" "needed" "path" "groups" "gpus" "share" "bounds")) -}}
{{- $v := .v }}
{{- $needed := .needed }}
{{- $groups := include "ray-service.groupsOf" (dict "v" $v "groups" .groups) | fromJsonArray }}
{{- $bounds := .bounds }}
{{- $part := divf .gpus (max 1 (len $groups)) }}
{{- range $name := $groups }}
{{- $_ := set $needed.fewest $name (addf (get $needed.fewest $name | default 0.0) (mulf $bounds.minReplicas $part)) }}
{{- $_ := set $needed.most $name (addf (get $needed.most $name | default 0.0) (mulf $bounds.maxReplicas $part)) }}
{{- include "ray-service.validateGpuFraction" (dict "v" $v "path" $.path "group" $name "share" $.share "replicas" $bounds.maxReplicas) }}
{{- end }}
{{- if and (not $groups) .gpus }}
{{- include "ray-service.addAnywhere" (dict "needed" $needed "gpus" .gpus "bounds" $bounds) }}
{{- end }}
{{- end }}
