{{- /* A Secret of `externalSecrets` has the keys that the pods mount. With a key missing, API keys get 401, and a pod that
       needs a certificate does not start. */ -}}
{{- define "gateway.validateSecrets" -}}
{{- $v := . }}
{{- if .externalSecrets }}
{{- range (include "gateway.volume" (dict "root" .root "v" $v) | fromYaml).projected.sources }}
{{- $secret := .secret | default dict }}
{{- $made := get $v.externalSecrets ($secret.name | default "") }}
{{- if $made }}
{{- range $secret.items }}
{{- if not (hasKey $made.keys .key) }}
{{- $words := dict "secret" $secret.name "key" .key "keys" (keys $made.keys | sortAlpha | join ", ") }}
{{- include "gateway.refuse" (dict "v" $v "id" "external-secret-key" "words" $words) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
