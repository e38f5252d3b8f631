{{- /* Tokens of an OpenID Connect provider, beside API keys. */ -}}

{{- define "gateway.loadTokens" }}
{{- if .v.oidc.enabled }}
  # One copy for all threads: see there.
  lua-load tokens.lua {{ .v.timeouts.keyRefreshSeconds }} "${TOKEN_KEYS_FOLDER-.}"
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
{{- $create := printf "kubectl create %s %s --namespace %s --from-file=%s=FILE" $kind $name .root.Release.Namespace $jwks.key }}
{{- $fix := printf "fix: %s --dry-run=client -o yaml | kubectl apply -f -" $create }}
{{- $oidc := .v.oidc }}
{{- $claims := dict "tenantClaim" $oidc.tenantClaim "nameClaim" $oidc.nameClaim "tenants" $tenants }}
{{- $accepted := dict "issuer" $oidc.issuer "audiences" $oidc.audiences "algorithms" $oidc.algorithms }}
{{- dict "clockSkewSeconds" $oidc.clockSkewSeconds "fix" $fix | merge $claims $accepted | toPrettyJson }}
{{- end }}

{{- /* A key wins: only what is no key is read as a token. */ -}}
{{- define "gateway.readTokens" }}
{{- if .v.oidc.enabled }}
  acl is_bounded_key req.fhdr(authorization),length le {{ int .v.limits.headerBytes }}
  http-request set-var(txn.token) lua.authenticate_token if !{ var(txn.key) -m found } {{ include "gateway.hasBearer" . }} is_bounded_key
  http-request set-var(txn.key) var(txn.token) if { var(txn.token) -m found } { var(txn.token) -m sub / }
{{- end }}
{{- end }}

{{- /* Refused tokens by the name of their error, in the order of the checks in tokens.lua. */ -}}
{{- define "gateway.refuseTokens" }}
{{- if .v.oidc.enabled }}
{{- $first := list "token-malformed" "token-algorithm" "token-key-unknown" "token-signature" "token-issuer" }}
{{- range concat $first (list "token-audience" "token-expired" "token-not-yet-valid" "token-tenant") }}
  http-request return {{ get $.answers . }} if !{ var(txn.key) -m found } { var(txn.token) -m str {{ . }} }
{{- end }}
{{- end }}
{{- end }}

{{- /* A pod that has read no JWKS would answer 401 to every token. */ -}}
{{- define "gateway.readyWithTokens" }}
{{- if .v.oidc.enabled }}
  acl has_token_keys str(token_keys),map_str_int(state.map) -m found
  http-request return status 503 content-type text/plain string "no valid JWKS was read yet; see the log" if { path /readyz } !has_token_keys
{{- end }}
{{- end }}
