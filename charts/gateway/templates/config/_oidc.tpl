{{- /* Tokens of an OpenID Connect provider, beside API keys. */ -}}

{{- define "gateway.configOidc" -}}
{{- if .oidc.enabled }}
  # One copy for all threads: see there.
  lua-load tokens.lua {{ .timeouts.keyRefreshSeconds }} "${TOKEN_KEYS_FOLDER-.}"
{{- end }}
{{- end }}

{{- /* Settings of tokens.lua, as JSON. */ -}}
{{- define "gateway.oidcFile" -}}
{{- $tenants := dict }}
{{- range $name, $tenant := .v.tenants }}
{{- range $tenant.claimValues }}
{{- $_ := set $tenants . $name }}
{{- end }}
{{- end }}
{{- $jwks := .v.oidc.jwks }}
{{- $kind := ternary "configmap" "secret generic" (ne $jwks.configMapName "") }}
{{- $name := $jwks.configMapName | default $jwks.secretName }}
{{- $fix := printf "fix: kubectl create %s %s --namespace %s --from-file=%s=FILE --dry-run=client -o yaml | kubectl apply -f -" $kind $name .root.Release.Namespace $jwks.key }}
{{- $oidc := .v.oidc }}
{{- $claims := dict "tenantClaim" $oidc.tenantClaim "nameClaim" $oidc.nameClaim "tenants" $tenants }}
{{- dict "issuer" $oidc.issuer "audiences" $oidc.audiences "algorithms" $oidc.algorithms "clockSkewSeconds" $oidc.clockSkewSeconds "fix" $fix | merge $claims | toPrettyJson }}
{{- end }}

{{- /* Refused tokens by the name of their error, in the order of the checks in tokens.lua. */ -}}
{{- define "gateway.tokenErrors" -}}
{{ list "token-malformed" "token-algorithm" "token-key-unknown" "token-signature" "token-issuer" "token-audience" "token-expired" "token-not-yet-valid" "token-tenant" | toJson }}
{{- end }}

{{- /* A key wins: only what is no key is read as a token. Takes the data of gateway.configFrontend. */ -}}
{{- define "gateway.frontendTokens" -}}
{{- if .v.oidc.enabled }}
http-request set-var(txn.token) lua.authenticate_token if !{ var(txn.key) -m found } { req.fhdr_cnt(authorization) eq 1 } { req.fhdr(authorization) -m beg -i "bearer " } { req.fhdr(authorization),length le {{ int .v.limits.headerBytes }} }
http-request set-var(txn.key) var(txn.token) if { var(txn.token) -m found } { var(txn.token) -m sub / }
{{- end }}
{{- end }}

{{- define "gateway.refuseTokens" -}}
{{- if .v.oidc.enabled }}
{{- range include "gateway.tokenErrors" . | fromJsonArray }}
http-request return {{ include "gateway.error" (dict "errors" $.errors "id" .) }} if !{ var(txn.key) -m found } { var(txn.token) -m str {{ . }} }
{{- end }}
{{- end }}
{{- end }}

{{- /* A pod that has read no JWKS would answer 401 to every token. */ -}}
{{- define "gateway.readyWithTokens" -}}
{{- if .oidc.enabled }}
  http-request return status 503 content-type text/plain string "no valid JWKS was read yet; see the log" if { path /readyz } !{ str(token_keys),map_str_int(state.map) -m found }
{{- end }}
{{- end }}
