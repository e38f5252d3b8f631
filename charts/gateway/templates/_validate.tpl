{{- /* Rules across fields, which the closed schema cannot hold; their words stand in _rules.tpl. Takes (list root values). */ -}}
{{- define "gateway.validate" -}}
{{- include "gateway.validateNames" . }}
{{- include "gateway.validateTenants" (index . 1) }}
{{- include "gateway.validateModels" (index . 1) }}
{{- include "gateway.validateEndpoints" (index . 1) }}
{{- include "gateway.validateRoutes" . }}
{{- include "gateway.validateSizes" (index . 1) }}
{{- include "gateway.validateScaling" (index . 1) }}
{{- include "gateway.validateNetwork" (index . 1) }}
{{- end }}

{{- /* Fails with "<id>: <message>" and the fix. Takes (list id words). */ -}}
{{- define "gateway.refuse" -}}
{{- $rule := get (include "gateway.rules" . | fromJson) (index . 0) }}
{{- $text := printf "%s: %s\n%s" (index . 0) $rule.message ($rule.fix | trim | indent 2) }}
{{- range $key, $value := index . 1 }}
{{- $text = replace (printf "{%s}" $key) (kindIs "string" $value | ternary $value ($value | toJson)) $text }}
{{- end }}
{{- fail $text }}
{{- end }}

{{- define "gateway.validateNames" -}}
{{- $name := include "gateway.name" (index . 0) }}
{{- if gt (len $name) 46 }}
{{- include "gateway.refuse" (list "name-length" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- include "gateway.refuse" (list "name-form" (dict "name" $name)) }}
{{- end }}
{{- $image := (index . 1).image }}
{{- if and (not $image.digest) (has $image.tag (list "" "latest")) }}
{{- include "gateway.refuse" (list "image-latest" (dict "image" (include "gateway.image" $image))) }}
{{- end }}
{{- end }}

{{- define "gateway.validateTenants" -}}
{{- $v := . }}
{{- if not .tenants }}
{{- include "gateway.refuse" (list "tenants-missing" dict) }}
{{- end }}
{{- if not .models }}
{{- include "gateway.refuse" (list "models-missing" dict) }}
{{- end }}
{{- $secrets := dict }}
{{- range $name, $tenant := .tenants }}
{{- if not $tenant.keys.secretName }}
{{- include "gateway.refuse" (list "tenant-key-secret" (dict "tenant" $name)) }}
{{- end }}
{{- $secret := printf "%s/%s" $tenant.keys.secretName $tenant.keys.secretKey }}
{{- with get $secrets $secret }}
{{- include "gateway.refuse" (list "tenant-keys-shared" (dict "tenant" $name "other" . "secret" $secret)) }}
{{- end }}
{{- $_ := set $secrets $secret $name }}
{{- if not $tenant.models }}
{{- include "gateway.refuse" (list "tenant-models-missing" (dict "tenant" $name "models" (keys $v.models | sortAlpha | join ", "))) }}
{{- end }}
{{- range $tenant.models }}
{{- if not (hasKey $v.models .) }}
{{- include "gateway.refuse" (list "model-unknown" (dict "tenant" $name "model" . "models" (keys $v.models | sortAlpha | join ", "))) }}
{{- end }}
{{- end }}
{{- range $key := list "requestsPerMinute" "concurrency" }}
{{- if not (get $tenant $key) }}
{{- include "gateway.refuse" (list "limit-zero" (dict "tenant" $name "limit" $key)) }}
{{- end }}
{{- end }}
{{- range $model, $version := $tenant.pinnedVersions }}
{{- if not (has $model $tenant.models) }}
{{- include "gateway.refuse" (list "pinned-model-unknown" (dict "tenant" $name "model" $model "models" (join ", " $tenant.models))) }}
{{- end }}
{{- $versions := (get $v.models $model).versions }}
{{- if not (hasKey $versions $version) }}
{{- include "gateway.refuse" (list "pinned-version-unknown" (dict "tenant" $name "model" $model "version" $version "versions" (keys $versions | sortAlpha | join ", ") "first" (keys $versions | sortAlpha | first))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
