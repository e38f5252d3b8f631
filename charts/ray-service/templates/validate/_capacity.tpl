{{- /* Compare what replicas need, at minReplicas and at maxReplicas, with the limits of the groups: a replica
       without room waits forever. */ -}}
{{- define "ray-service.validateCapacity" -}}
{{- $v := . }}
{{- $needed := include "ray-service.neededResources" . | fromJson }}
{{- $cores := 0.0 }}
{{- $isShort := false }}
{{- range $name, $group := .workerGroups }}
{{- $pods := include "ray-service.maxPods" (dict "v" $v "group" $group) | float64 }}
{{- $cpus := include "ray-service.number" .resources.limits.cpu | float64 }}
{{- $cores = addf $cores (mulf $pods $cpus) }}
{{- $have := mulf $pods .gpu.count }}
{{- $field := ternary "maxReplicas" "minReplicas" (get $v.autoscaler "declared") }}
{{- $each := max 1 (mul .numOfHosts .gpu.count) }}
{{- $need := get $needed.fewest $name | default 0.0 }}
{{- $used := get $needed.most $name | default 0.0 }}
{{- $ingress := include "ray-service.ingressCpus" (dict "v" $v "group" $name) | float64 }}
{{- $lacksCpus := gt $ingress (mulf $pods $cpus) }}
{{- /* One number of replicas has room for all: the fixes of the rules are the same. */}}
{{- $enough := divf (maxf $need $used) $each | ceil }}
{{- if $lacksCpus }}
{{- $enough = maxf $enough (divf $ingress (mulf $cpus .numOfHosts) | ceil) }}
{{- end }}
{{- if gt $need (addf $have 1e-9) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-gpu" "words" (dict "group" $name "have" $have "need" $need "field" $field "replicas" $enough)) }}
{{- end }}
{{- if gt $used (addf $have 1e-9) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-limit" "words" (dict "group" $name "have" $have "need" $used "field" $field "replicas" $enough)) }}
{{- end }}
{{- if $lacksCpus }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-ingress" "words" (dict "group" $name "have" (mulf $pods $cpus) "need" $ingress "field" $field "replicas" $enough)) }}
{{- end }}
{{- $isShort = or $isShort $lacksCpus (gt (maxf $need $used) (addf $have 1e-9)) }}
{{- $always := mulf $group.minReplicas .numOfHosts .gpu.count }}
{{- if and (not $needed.anywhere.most) (not $lacksCpus) .gpu.count (ge (subf $always $used) (float64 $each)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-idle" "words" (dict "group" $name "always" $always "used" $used "replicas" (divf $used $each | ceil))) }}
{{- end }}
{{- end }}
{{- /* The fix of a group changes the sum of all. `helm lint` goes on after the refusal of values without groups. */}}
{{- if and .workerGroups (not $isShort) }}
{{- include "ray-service.validateAnyGroup" (dict "v" $v "needed" $needed) }}
{{- end }}
{{- if gt $needed.cpus $cores }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-cpu" "words" (dict "have" $cores "need" $needed.cpus "group" (first (keys .workerGroups | sortAlpha)))) }}
{{- end }}
{{- end }}
