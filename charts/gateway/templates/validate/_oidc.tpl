{{- define "gateway.validateOidc" -}}
{{- $v := . }}
{{- $owners := dict }}
{{- range $name, $tenant := .tenants }}
{{- if and $tenant.claimValues (not $v.oidc.enabled) }}
{{- include "gateway.refuse" (dict "v" $v "id" "oidc-disabled" "words" (dict "tenant" $name)) }}
{{- end }}
{{- $shared := list }}
{{- $foreign := list }}
{{- $kept := list }}
{{- range $tenant.claimValues | uniq }}
{{- $isForeign := and (ne . $name) (hasKey $v.tenants .) }}
{{- if hasKey $owners . }}
{{- $shared = append $shared (dict "name" . "why" (printf "tenant %s has it too" (get $owners .))) }}
{{- else if not $isForeign }}
{{- $kept = append $kept . }}
{{- end }}
{{- if $isForeign }}
{{- $foreign = append $foreign (dict "name" .) }}
{{- end }}
{{- $_ := set $owners . $name }}
{{- end }}
{{- $words := dict "tenant" $name "kept" ($kept | default (list $name) | toJson) }}
{{- include "gateway.refuseEntries" (dict "v" $v "id" "oidc-claim-shared" "bad" $shared "words" $words) }}
{{- include "gateway.refuseEntries" (dict "v" $v "id" "oidc-claim-of-another" "bad" $foreign "words" $words) }}
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
