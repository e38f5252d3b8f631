{{- define "tenant.validateQuota" -}}
{{- $v := . }}
{{- $quota := .quota }}
{{- include "tenant.validateOnce" (dict "v" $v "path" "quota.gpuResources" "names" $quota.gpuResources) }}
{{- include "tenant.validateResources" . }}
{{- range $resource, $gpus := $quota.gpus }}
{{- $path := list "quota" "gpus" $resource }}
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
{{- include "tenant.validateDenied" . }}
{{- range $name, $class := $quota.priorityClasses }}
{{- $path := list "quota" "priorityClasses" $name }}
{{- range $resource, $gpus := $class.gpus }}
{{- $held := get $quota.gpus $resource | default dict }}
{{- $sum := add ($held.baseline | default 0) ($held.upgradeSurge | default 0) }}
{{- /* A resource that quota.gpuResources lacks has one problem and one fix: its name. */}}
{{- if and (has $resource $quota.gpuResources) (gt (int64 $gpus) $sum) }}
{{- include "tenant.refuse" (dict "v" $v "id" "priority-over-quota" "words" (dict "path" $path "resource" $resource "gpus" $gpus "sum" $sum)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Fails on GPU resources of limits that are not in quota.gpuResources. Takes the values with `root`. */ -}}
{{- define "tenant.validateResources" -}}
{{- $known := .quota.gpuResources }}
{{- $limited := dict "quota.gpus" .quota.gpus }}
{{- range $name, $class := .quota.priorityClasses }}
{{- $_ := set $limited (printf "quota.priorityClasses.%s.gpus" $name) $class.gpus }}
{{- end }}
{{- $bad := list }}
{{- $all := $known }}
{{- range $path, $gpus := $limited }}
{{- range $resource, $_ := $gpus }}
{{- if not (has $resource $known) }}
{{- $bad = append $bad (dict "name" (printf "%s.%s" $path $resource) "why" "quota.gpuResources lacks this GPU resource") }}
{{- $all = append $all $resource | uniq }}
{{- end }}
{{- end }}
{{- end }}
{{- $words := dict "known" (join ", " $known) "list" (toJson $all) }}
{{- include "tenant.refuseEntries" (dict "v" . "id" "resource-unknown" "bad" $bad "words" $words) }}
{{- end }}
