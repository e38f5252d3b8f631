{{- define "tenant.validateQuota" -}}
{{- $v := . }}
{{- $quota := .quota }}
{{- include "tenant.validateOnce" (dict "v" $v "path" "quota.gpuResources" "names" $quota.gpuResources) }}
{{- range $resource, $gpus := $quota.gpus }}
{{- $path := list "quota" "gpus" $resource }}
{{- include "tenant.validateResource" (dict "v" $v "path" $path "resource" $resource) }}
{{- if lt $gpus.baseline $gpus.planned }}
{{- include "tenant.refuse" (dict "v" $v "id" "quota-below-plan" "words" (dict "resource" $resource "planned" $gpus.planned "baseline" $gpus.baseline)) }}
{{- end }}
{{- if not $gpus.baseline }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" $path "why" "no pod could use this GPU resource" "fix" (printf "# remove %s: a GPU resource without an entry is denied" (join "." $path)))) }}
{{- end }}
{{- end }}
{{- range $resource, $compute := $quota.compute }}
{{- if not (float64 (include "tenant.number" $compute.baseline)) }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" (printf "quota.compute.%s" $resource) "why" "no pod could start" "fix" (printf "# remove quota.compute.%s: without an entry it is not limited" $resource))) }}
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
{{- range $name := $quota.allowedPriorityClasses }}
{{- if has $name $quota.deniedPriorityClasses }}
{{- include "tenant.refuse" (dict "v" $v "id" "priority-denied" "words" (dict "path" (list "quota" "allowedPriorityClasses") "name" $name "denied" (without $quota.deniedPriorityClasses $name | toJson))) }}
{{- end }}
{{- end }}
{{- range $name, $class := $quota.priorityClasses }}
{{- $path := list "quota" "priorityClasses" $name }}
{{- if has $name $quota.deniedPriorityClasses }}
{{- include "tenant.refuse" (dict "v" $v "id" "priority-denied" "words" (dict "path" $path "name" $name "denied" (without $quota.deniedPriorityClasses $name | toJson))) }}
{{- end }}
{{- if not $class.pods }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "path" (append $path "pods") "why" "no pod could have this PriorityClass" "fix" (printf "quota: {deniedPriorityClasses: %s}   # and remove %s" (toJson (append $quota.deniedPriorityClasses $name)) (join "." $path)))) }}
{{- end }}
{{- range $resource, $gpus := $class.gpus }}
{{- include "tenant.validateResource" (dict "v" $v "path" $path "resource" $resource) }}
{{- $held := get $quota.gpus $resource | default dict }}
{{- $sum := add ($held.baseline | default 0) ($held.upgradeSurge | default 0) }}
{{- if gt (int64 $gpus) $sum }}
{{- include "tenant.refuse" (dict "v" $v "id" "priority-over-quota" "words" (dict "path" $path "resource" $resource "gpus" $gpus "sum" $sum)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes a dict: v, path, resource. */ -}}
{{- define "tenant.validateResource" -}}
{{- include "tenant.arguments" (dict "template" "tenant.validateResource" "given" . "names" (list "v" "path" "resource")) -}}
{{- $v := .v }}
{{- $known := $v.quota.gpuResources }}
{{- if not (has .resource $known) }}
{{- include "tenant.refuse" (dict "v" $v "id" "resource-unknown" "words" (dict "path" .path "resource" .resource "known" (join ", " $known) "list" (toJson (append $known .resource)))) }}
{{- end }}
{{- end }}
