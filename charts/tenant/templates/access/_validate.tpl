{{- /* Takes (list root values). */ -}}
{{- define "tenant.validateAccess" -}}
{{- $namespace := include "tenant.namespace" (index . 0) }}
{{- $seen := dict }}
{{- range $role, $subjects := (index . 1).access }}
{{- range $kind, $names := $subjects }}
{{- $path := printf "access.%s.%s" $role $kind }}
{{- range $names }}
{{- $words := dict "path" $path "name" . "role" $role }}
{{- if hasPrefix "system:" . }}
{{- include "tenant.refuse" (list "subject-of-the-system" $words) }}
{{- end }}
{{- if and (eq $kind "serviceAccounts") (hasPrefix (printf "%s/" $namespace) .) }}
{{- include "tenant.refuse" (list "subject-inside" (merge (dict "namespace" $namespace "account" (splitList "/" . | last)) $words)) }}
{{- end }}
{{- $key := printf "%s %s" $kind . }}
{{- with get $seen $key }}
{{- include "tenant.refuse" (list "subject-duplicate" (merge (dict "first" .) $words)) }}
{{- end }}
{{- $_ := set $seen $key $path }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
