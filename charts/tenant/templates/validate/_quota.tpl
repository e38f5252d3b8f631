{{- define "tenant.validateQuota" -}}
{{- $v := . }}
{{- $quota := .quota }}
{{- include "tenant.validateOnce" (dict "v" $v "path" "quota.gpuResources" "names" $quota.gpuResources) }}
{{- range $resource, $gpus := $quota.gpus }}
{{- $path := printf "quota.gpus.%s" $resource }}
{{- include "tenant.validateResource" (dict "v" $v "path" $path "resource" $resource) }}
{{- if lt $gpus.baseline $gpus.planned }}
{{- include "tenant.refuse" (dict "v" $v "id" "quota-under-plan" "words" (dict "resource" $resource "planned" $gpus.planned "baseline" $gpus.baseline)) }}
{{- end }}
{{- if not $gpus.baseline }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" $path "why" "not even one card could be held" "fix" (printf "quota: {gpus: {%s: null}}   # left out, it is denied" $resource))) }}
{{- end }}
{{- end }}
{{- range $resource, $compute := $quota.compute }}
{{- if not (float64 (include "tenant.number" $compute.baseline)) }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" (printf "quota.compute.%s" $resource) "why" "no pod could start" "fix" (printf "quota: {compute: {%s: null}}   # left out, it has no bound" $resource))) }}
{{- end }}
{{- end }}
{{- if not $quota.pods.baseline }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" "quota.pods.baseline" "why" "no pod could start" "fix" "quota: {pods: {baseline: 64}}")) }}
{{- end }}
{{- range list "rayServices" "services" "jobs" "configMaps" "secrets" }}
{{- if not (get $quota.objects .) }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" (printf "quota.objects.%s" .) "why" "no release of ray-service could be installed" "fix" (printf "quota: {objects: {%s: 32}}" .))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "tenant.validatePriority" -}}
{{- $v := . }}
{{- $quota := .quota }}
{{- include "tenant.validateOnce" (dict "v" $v "path" "quota.deniedPriorityClasses" "names" $quota.deniedPriorityClasses) }}
{{- range $name, $class := $quota.priorityClasses }}
{{- $path := printf "quota.priorityClasses.%s" $name }}
{{- if has $name $quota.deniedPriorityClasses }}
{{- include "tenant.refuse" (dict "v" $v "id" "priority-denied" "words" (dict "path" $path "name" $name)) }}
{{- end }}
{{- if not $class.pods }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" (printf "%s.pods" $path) "why" "no pod could have the class" "fix" (printf "quota: {deniedPriorityClasses: %s}" (toJson (append $quota.deniedPriorityClasses $name))))) }}
{{- end }}
{{- range $resource, $gpus := $class.gpus }}
{{- include "tenant.validateResource" (dict "v" $v "path" $path "resource" $resource) }}
{{- $held := get $quota.gpus $resource | default dict }}
{{- $sum := add ($held.baseline | default 0) ($held.upgradeSurge | default 0) }}
{{- if gt (int64 $gpus) $sum }}
{{- include "tenant.refuse" (dict "v" $v "id" "priority-over-quota" "words" (dict "path" $path "resource" $resource "cards" $gpus "sum" $sum)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes a dict: v, path, resource. */ -}}
{{- define "tenant.validateResource" -}}
{{- $v := .v }}
{{- $known := $v.quota.gpuResources }}
{{- if not (has .resource $known) }}
{{- include "tenant.refuse" (dict "v" $v "id" "resource-unknown" "words" (dict "path" .path "resource" .resource "known" (join ", " $known) "list" (toJson (append $known .resource)))) }}
{{- end }}
{{- end }}
