{{- /* Rules across fields, which the closed schema cannot hold; their words stand in _rules.tpl. Many mirror what KubeRay
       finds only after the API server accepted the object, when an install has long said "deployed".
       Takes (list root values). */ -}}
{{- define "ray-service.validate" -}}
{{- include "ray-service.validateNames" . }}
{{- include "ray-service.validateServe" (index . 1) }}
{{- include "ray-service.validateGroups" (index . 1) }}
{{- include "ray-service.validateNodes" (index . 1) }}
{{- include "ray-service.validateModels" (index . 1) }}
{{- include "ray-service.validateCapacity" (index . 1) }}
{{- include "ray-service.validateCluster" . }}
{{- include "ray-service.validateNetwork" . }}
{{- include "ray-service.validateImages" (index . 1) }}
{{- include "ray-service.validateEnv" (index . 1) }}
{{- end }}

{{- /* Fails with "<id>: <message>" and the fix, where the rule holds for this KubeRay. Takes (list values id words). */ -}}
{{- define "ray-service.refuse" -}}
{{- $rule := get (include "ray-service.rules" . | fromJson) (index . 1) }}
{{- $version := (index . 0).kuberay.version }}
{{- $since := semverCompare (printf ">=%s" (get $rule "since" | default "0.0.0")) $version }}
{{- $until := semverCompare (printf "<=%s" (get $rule "until" | default "999.0.0")) $version }}
{{- if and $since $until }}
{{- $text := printf "%s: %s\n%s" (index . 1) $rule.message ($rule.fix | trim | indent 2) }}
{{- range $key, $value := index . 2 }}
{{- $text = replace (printf "{%s}" $key) (kindIs "string" $value | ternary $value ($value | toJson)) $text }}
{{- end }}
{{- fail $text }}
{{- end }}
{{- end }}

{{- define "ray-service.validateNames" -}}
{{- $v := index . 1 }}
{{- $name := include "ray-service.name" (index . 0) }}
{{- if gt (len $name) 47 }}
{{- include "ray-service.refuse" (list $v "name-length" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- include "ray-service.refuse" (list $v "name-form" (dict "name" $name)) }}
{{- end }}
{{- end }}
