{{- /* A PriorityClass is denied, or allowed, or limited to some pods. Takes the values with `root`. */ -}}
{{- define "tenant.validateDenied" -}}
{{- $quota := .quota }}
{{- $denied := $quota.deniedPriorityClasses }}
{{- $bad := list }}
{{- $unused := list }}
{{- $paths := list }}
{{- range $quota.allowedPriorityClasses }}
{{- if has . $quota.deniedPriorityClasses }}
{{- $bad = append $bad (dict "name" . "why" "quota.allowedPriorityClasses has it too") }}
{{- $denied = without $denied . }}
{{- end }}
{{- end }}
{{- range $name, $class := $quota.priorityClasses }}
{{- if not $class.pods }}
{{- $unused = append $unused $name }}
{{- $paths = append $paths (printf "quota.priorityClasses.%s.pods" $name) }}
{{- else if has $name $quota.deniedPriorityClasses }}
{{- $bad = append $bad (dict "name" $name "why" "quota.priorityClasses has it too") }}
{{- $denied = without $denied $name }}
{{- end }}
{{- end }}
{{- $denied = concat $denied $unused | uniq | toJson }}
{{- include "tenant.refuseEntries" (dict "v" . "id" "priority-denied" "bad" $bad "words" (dict "denied" $denied)) }}
{{- if $unused }}
{{- $fix := printf "quota: {deniedPriorityClasses: %s}   # and quota.priorityClasses, without %s" $denied (join ", without " $unused) }}
{{- $words := dict "path" (join ", " $paths) "why" "no pod could have this PriorityClass" "fix" $fix }}
{{- include "tenant.refuse" (dict "v" . "id" "limit-zero" "words" $words) }}
{{- end }}
{{- end }}
