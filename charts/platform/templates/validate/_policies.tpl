{{- define "platform.validatePolicies" -}}
{{- $v := . }}
{{- $policies := .policies }}
{{- range $name, $policy := omit $policies "excludedNamespaces" }}
{{- if and (ne $policy.action "Deny") (not $policy.reason) }}
{{- include "platform.refuse" (dict "v" $v "id" "policy-reason" "words" (dict "path" (printf "policies.%s" $name) "name" $name "action" $policy.action)) }}
{{- end }}
{{- end }}
{{- range $name := list "modelRevision" "remoteCode" "requestTimeout" }}
{{- if and (eq (get $policies $name).action "Deny") (ne $policies.serveConfigForm.action "Deny") }}
{{- include "platform.refuse" (dict "v" $v "id" "policy-blind" "words" (dict "name" $name "action" $policies.serveConfigForm.action)) }}
{{- end }}
{{- end }}
{{- end }}
