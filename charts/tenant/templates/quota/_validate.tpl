{{- /* Takes the values. */ -}}
{{- define "tenant.validateQuota" -}}
{{- $quota := .quota }}
{{- include "tenant.validateOnce" (list "quota.gpuResources" $quota.gpuResources) }}
{{- range $resource, $gpus := $quota.gpus }}
{{- $path := printf "quota.gpus.%s" $resource }}
{{- include "tenant.validateResource" (list $path $resource $quota) }}
{{- if lt $gpus.baseline $gpus.planned }}
{{- include "tenant.refuse" (list "quota-under-plan" (dict "resource" $resource "planned" $gpus.planned "baseline" $gpus.baseline)) }}
{{- end }}
{{- if not $gpus.baseline }}
{{- include "tenant.refuse" (list "limit-zero" (dict "path" $path "why" "not even one card could be held" "fix" (printf "quota: {gpus: {%s: null}}   # left out, it is denied" $resource))) }}
{{- end }}
{{- end }}
{{- range $resource, $compute := $quota.compute }}
{{- if not (float64 (include "tenant.number" $compute.baseline)) }}
{{- include "tenant.refuse" (list "limit-zero" (dict "path" (printf "quota.compute.%s" $resource) "why" "no pod could start" "fix" (printf "quota: {compute: {%s: null}}   # left out, it has no bound" $resource))) }}
{{- end }}
{{- end }}
{{- if not $quota.pods.baseline }}
{{- include "tenant.refuse" (list "limit-zero" (dict "path" "quota.pods.baseline" "why" "no pod could start" "fix" "quota: {pods: {baseline: 64}}")) }}
{{- end }}
{{- range list "rayServices" "services" "jobs" "configMaps" "secrets" }}
{{- if not (get $quota.objects .) }}
{{- include "tenant.refuse" (list "limit-zero" (dict "path" (printf "quota.objects.%s" .) "why" "no release of ray-service could be installed" "fix" (printf "quota: {objects: {%s: 32}}" .))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tenant.validatePriority" -}}
{{- $quota := .quota }}
{{- include "tenant.validateOnce" (list "quota.deniedPriorityClasses" $quota.deniedPriorityClasses) }}
{{- range $name, $class := $quota.priorityClasses }}
{{- $path := printf "quota.priorityClasses.%s" $name }}
{{- if has $name $quota.deniedPriorityClasses }}
{{- include "tenant.refuse" (list "priority-denied" (dict "path" $path "name" $name)) }}
{{- end }}
{{- if not $class.pods }}
{{- include "tenant.refuse" (list "limit-zero" (dict "path" (printf "%s.pods" $path) "why" "no pod could have the class" "fix" (printf "quota: {deniedPriorityClasses: %s}" (toJson (append $quota.deniedPriorityClasses $name))))) }}
{{- end }}
{{- range $resource, $gpus := $class.gpus }}
{{- include "tenant.validateResource" (list $path $resource $quota) }}
{{- $held := get $quota.gpus $resource | default dict }}
{{- $sum := add ($held.baseline | default 0) ($held.upgradeSurge | default 0) }}
{{- if gt (int64 $gpus) $sum }}
{{- include "tenant.refuse" (list "priority-over-quota" (dict "path" $path "resource" $resource "cards" $gpus "sum" $sum)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes (list path resource quota). */ -}}
{{- define "tenant.validateResource" -}}
{{- $known := (index . 2).gpuResources }}
{{- if not (has (index . 1) $known) }}
{{- include "tenant.refuse" (list "resource-unknown" (dict "path" (index . 0) "resource" (index . 1) "known" (join ", " $known) "list" (toJson (append $known (index . 1))))) }}
{{- end }}
{{- end }}
