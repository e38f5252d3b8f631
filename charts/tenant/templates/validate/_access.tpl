{{- define "tenant.validateAccess" -}}
{{- $v := . }}
{{- $namespace := include "tenant.namespace" .root }}
{{- $seen := dict }}
{{- range $role, $subjects := .access }}
{{- range $kind, $names := $subjects }}
{{- $path := printf "access.%s.%s" $role $kind }}
{{- range $names }}
{{- $words := dict "path" $path "name" . "role" $role }}
{{- if hasPrefix "system:" . }}
{{- include "tenant.refuse" (dict "v" $v "id" "subject-reserved" "words" $words) }}
{{- end }}
{{- if and (eq $kind "serviceAccounts") (hasPrefix (printf "%s/" $namespace) .) }}
{{- include "tenant.refuse" (dict "v" $v "id" "subject-own-namespace" "words" (merge (dict "namespace" $namespace "account" (splitList "/" . | last)) $words)) }}
{{- end }}
{{- $key := printf "%s %s" $kind . }}
{{- with get $seen $key }}
{{- include "tenant.refuse" (dict "v" $v "id" "subject-duplicate" "words" (merge (dict "first" .) $words)) }}
{{- end }}
{{- $_ := set $seen $key $path }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
