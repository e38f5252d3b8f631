{{- /* Rules across fields, which the closed schema cannot hold; their words stand in _rules.tpl. Takes (list root values). */ -}}
{{- define "tenant.validate" -}}
{{- include "tenant.validateNames" . }}
{{- include "tenant.validateNamespace" . }}
{{- include "tenant.validateQuota" (index . 1) }}
{{- include "tenant.validatePriority" (index . 1) }}
{{- include "tenant.validateLimits" (index . 1).limits }}
{{- include "tenant.validateNetwork" (index . 1).networkPolicy }}
{{- include "tenant.validateAccess" . }}
{{- include "tenant.validateQueue" (index . 1).kueue }}
{{- end }}

{{- /* Fails with "<id>: <message>" and the fix. Takes (list id words). */ -}}
{{- define "tenant.refuse" -}}
{{- $rule := get (include "tenant.rules" . | fromJson) (index . 0) }}
{{- $text := printf "%s: %s\n%s" (index . 0) $rule.message ($rule.fix | trim | indent 2) }}
{{- range $key, $value := index . 1 }}
{{- $text = replace (printf "{%s}" $key) (kindIs "string" $value | ternary $value ($value | toJson)) $text }}
{{- end }}
{{- fail $text }}
{{- end }}

{{- define "tenant.validateNames" -}}
{{- $name := include "tenant.name" (index . 0) }}
{{- if gt (len $name) 63 }}
{{- include "tenant.refuse" (list "name-length" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- include "tenant.refuse" (list "name-form" (dict "name" $name)) }}
{{- end }}
{{- end }}

{{- /* A name that stands twice in a list. Takes (list path names). */ -}}
{{- define "tenant.validateOnce" -}}
{{- $path := index . 0 }}
{{- $seen := dict }}
{{- range index . 1 }}
{{- if hasKey $seen . }}
{{- include "tenant.refuse" (list "duplicate" (dict "path" $path "name" .)) }}
{{- end }}
{{- $_ := set $seen . true }}
{{- end }}
{{- end }}
