{{- define "tenant.validateAccess" -}}
{{- $v := . }}
{{- $namespace := include "tenant.namespace" .root }}
{{- $seen := dict }}
{{- range $role, $subjects := .access }}
{{- range $kind, $names := $subjects }}
{{- $path := printf "access.%s.%s" $role $kind }}
{{- $words := dict "path" $path "role" $role "kind" $kind }}
{{- $reserved := list }}
{{- $own := list }}
{{- $moved := list }}
{{- range $name := $names }}
{{- if hasPrefix "system:" . }}
{{- $reserved = append $reserved (dict "name" .) }}
{{- end }}
{{- if and (eq $kind "serviceAccounts") (hasPrefix (printf "%s/" $namespace) .) }}
{{- $own = append $own (dict "name" .) }}
{{- $moved = append $moved (printf "%s-ci/%s" $namespace (splitList "/" . | last)) }}
{{- else }}
{{- $moved = append $moved . }}
{{- end }}
{{- $key := printf "%s %s" $kind . }}
{{- with get $seen $key }}
{{- include "tenant.refuse" (dict "v" $v "id" "subject-duplicate" "words" (merge (dict "first" . "name" $name) $words)) }}
{{- end }}
{{- $_ := set $seen $key $path }}
{{- end }}
{{- include "tenant.refuseEntries" (dict "v" $v "id" "subject-reserved" "bad" $reserved "given" $names "words" $words) }}
{{- include "tenant.refuseEntries" (dict "v" $v "id" "subject-own-namespace" "bad" $own "words" (merge (dict "moved" (toJson $moved)) $words)) }}
{{- end }}
{{- end }}
{{- end }}
