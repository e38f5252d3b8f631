{{- define "platform.validateClasses" -}}
{{- $v := . }}
{{- $classes := .priorityClasses }}
{{- $seen := dict }}
{{- range $role := list "gateway" "head" "workers" "batch" }}
{{- $class := get $classes $role }}
{{- if hasKey $seen $class.name }}
{{- include "platform.refuse" (dict "v" $v "id" "duplicate" "words" (dict "path" (printf "priorityClasses.%s.name" $role) "name" $class.name "first" (printf "priorityClasses.%s" (get $seen $class.name)) "fix" (printf "priorityClasses: {%s: {name: rayhelm-%s}}" $role $role))) }}
{{- end }}
{{- $_ := set $seen $class.name $role }}
{{- end }}
{{- if or (le $classes.gateway.value $classes.head.value) (le $classes.head.value $classes.workers.value) (le $classes.workers.value $classes.batch.value) }}
{{- include "platform.refuse" (dict "v" $v "id" "priority-order" "words" (dict "gateway" (int64 $classes.gateway.value) "head" (int64 $classes.head.value) "workers" (int64 $classes.workers.value) "batch" (int64 $classes.batch.value))) }}
{{- end }}
{{- end }}
