{{- define "platform.validatePolicies" -}}
{{- $v := . }}
{{- range $name, $about := $v.root.Files.Get "files/policies.json" | fromJson }}
{{- $key := camelcase $name | untitle }}
{{- $policy := get $v.policies $key }}
{{- if and (ne $policy.action "Deny") (not $policy.reason) }}
{{- include "platform.refuse" (dict "v" $v "id" "policy-reason" "words" (dict "path" (printf "policies.%s" $key) "name" $key "action" $policy.action)) }}
{{- end }}
{{- range $needed := $about.requires }}
{{- $neededKey := camelcase $needed | untitle }}
{{- $action := (get $v.policies $neededKey).action }}
{{- if and (eq $policy.action "Deny") (ne $action "Deny") }}
{{- include "platform.refuse" (dict "v" $v "id" "policy-requires" "words" (dict "name" $key "needed" $neededKey "action" $action)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
