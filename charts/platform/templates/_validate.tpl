{{- /* Rules across fields, which the closed schema cannot hold; their words stand in _rules.tpl. Takes (list root values).
       Each folder has its own, called from here. */ -}}
{{- define "platform.validate" -}}
{{- include "platform.validateClasses" (index . 1) }}
{{- include "platform.validateGpus" (index . 1) }}
{{- include "platform.validatePolicies" (index . 1) }}
{{- include "platform.validateMetrics" (index . 1).metrics }}
{{- end }}

{{- /* Fails with "<id>: <message>" and the fix. Takes (list id words). */ -}}
{{- define "platform.refuse" -}}
{{- $rule := get (include "platform.rules" . | fromJson) (index . 0) }}
{{- $text := printf "%s: %s\n%s" (index . 0) $rule.message ($rule.fix | trim | indent 2) }}
{{- range $key, $value := index . 1 }}
{{- $text = replace (printf "{%s}" $key) (kindIs "string" $value | ternary $value ($value | toJson)) $text }}
{{- end }}
{{- fail $text }}
{{- end }}
