{{- /* Rules across fields, which the closed schema cannot hold; their words are in files/rules.json. Takes the values
       with `root`. */ -}}
{{- define "gateway.validate" -}}
{{- include "gateway.validateNames" . }}
{{- include "gateway.validateTenants" . }}
{{- include "gateway.validateOidc" . }}
{{- include "gateway.validateAliases" . }}
{{- include "gateway.validateModelTenants" . }}
{{- include "gateway.validateModels" . }}
{{- include "gateway.validateOpenapi" . }}
{{- include "gateway.validateEndpoints" . }}
{{- include "gateway.validateBounds" . }}
{{- include "gateway.validateRoutes" . }}
{{- include "gateway.validateSizes" . }}
{{- include "gateway.validateScaling" . }}
{{- include "gateway.validateNetwork" . }}
{{- include "gateway.validateRemote" . }}
{{- include "gateway.validateSecrets" . }}
{{- include "gateway.validatePods" . }}
{{- end }}

{{- define "gateway.validateNames" -}}
{{- $v := . }}
{{- $name := include "gateway.name" .root }}
{{- if gt (len $name) 46 }}
{{- include "gateway.refuse" (dict "v" $v "id" "name-length" "words" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- include "gateway.refuse" (dict "v" $v "id" "name-form" "words" (dict "name" $name)) }}
{{- end }}
{{- $image := .image }}
{{- if and (not $image.digest) (has $image.tag (list "" "latest")) }}
{{- include "gateway.refuse" (dict "v" $v "id" "image-latest" "words" (dict "image" (include "gateway.image" $image))) }}
{{- end }}
{{- end }}

{{- define "gateway.validateTenants" -}}
{{- $v := . }}
{{- if not .tenants }}
{{- include "gateway.refuse" (dict "v" $v "id" "tenants-missing" "words" dict) }}
{{- end }}
{{- if not .models }}
{{- include "gateway.refuse" (dict "v" $v "id" "models-missing" "words" dict) }}
{{- end }}
{{- $secrets := dict }}
{{- range $name, $tenant := .tenants }}
{{- if not (or $tenant.keys.secretName $tenant.claimValues) }}
{{- include "gateway.refuse" (dict "v" $v "id" "tenant-key-secret" "words" (dict "tenant" $name)) }}
{{- end }}
{{- $secret := printf "%s/%s" $tenant.keys.secretName $tenant.keys.secretKey }}
{{- with and $tenant.keys.secretName (get $secrets $secret) }}
{{- include "gateway.refuse" (dict "v" $v "id" "tenant-keys-shared" "words" (dict "tenant" $name "other" . "secret" $secret)) }}
{{- end }}
{{- $_ := set $secrets $secret $name }}
{{- if not $tenant.models }}
{{- include "gateway.refuse" (dict "v" $v "id" "tenant-models-missing" "words" (dict "tenant" $name "models" (keys $v.models | sortAlpha | join ", "))) }}
{{- end }}
{{- $unknown := list }}
{{- $known := list }}
{{- range $tenant.models }}
{{- if hasKey $v.models . }}
{{- $known = append $known . }}
{{- else }}
{{- $unknown = append $unknown (dict "name" .) }}
{{- end }}
{{- end }}
{{- $all := keys $v.models | sortAlpha }}
{{- $words := dict "tenant" $name "models" (join ", " $all) "known" ($known | default $all | toJson) }}
{{- include "gateway.refuseEntries" (dict "v" $v "id" "model-unknown" "bad" $unknown "words" $words) }}
{{- range $key := list "requestsPerMinute" "concurrency" "tokensPerMinute" }}
{{- if and (kindIs "float64" (get $tenant $key)) (not (get $tenant $key)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "limit-zero" "words" (dict "tenant" $name "limit" $key)) }}
{{- end }}
{{- end }}
{{- range $model, $version := $tenant.pinnedVersions }}
{{- if not (has $model $tenant.models) }}
{{- include "gateway.refuse" (dict "v" $v "id" "pinned-model-unknown" "words" (dict "tenant" $name "model" $model "models" (join ", " $tenant.models))) }}
{{- end }}
{{- $versions := (get $v.models $model).versions }}
{{- if not (hasKey $versions $version) }}
{{- include "gateway.refuse" (dict "v" $v "id" "pinned-version-unknown" "words" (dict "tenant" $name "model" $model "version" $version "versions" (keys $versions | sortAlpha | join ", ") "first" (keys $versions | sortAlpha | first))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
