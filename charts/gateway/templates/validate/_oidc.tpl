{{- define "gateway.validateOidc" -}}
{{- $v := . }}
{{- $owners := dict }}
{{- range $name, $tenant := .tenants }}
{{- if and $tenant.claimValues (not $v.oidc.enabled) }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-disabled" "words" (dict "tenant" $name)) }}
{{- end }}
{{- range $tenant.claimValues | uniq }}
{{- with get $owners . }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-claim-shared" "words" (dict "tenant" $name "other" .name "value" .value)) }}
{{- end }}
{{- $_ := set $owners . (dict "name" $name "value" .) }}
{{- if and (ne . $name) (hasKey $v.tenants .) }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-claim-of-another" "words" (dict "tenant" $name "value" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if .oidc.enabled }}
{{- if not .oidc.issuer }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-issuer" "words" dict) }}
{{- end }}
{{- if not .oidc.audiences }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-audience" "words" dict) }}
{{- end }}
{{- if eq (empty .oidc.jwks.configMapName) (empty .oidc.jwks.secretName) }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-jwks" "words" dict) }}
{{- end }}
{{- if not $owners }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-claims-missing" "words" (dict "tenant" (keys .tenants | sortAlpha | first))) }}
{{- end }}
{{- end }}
{{- end }}
