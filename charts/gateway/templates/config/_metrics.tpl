{{- define "gateway.configMetrics" -}}
frontend metrics
  bind {{ .v.listen.address }}:{{ int .v.listen.metricsPort }} proto h1
  maxconn {{ include "gateway.metricsConnections" .v }}
  http-request use-service prometheus-exporter if { path /metrics } { method GET }
  http-request use-service lua.tenant_metrics if { path /metrics/tenants } { method GET }
  http-request return status 200 content-type text/plain string ok if { path /livez }
  {{- include "gateway.readyWithTokens" .v }}
  {{- include "gateway.readyWithSalt" . }}
  # A pod that has read no key would answer 401 to every request, and one that no longer reads keys would accept revoked
  # ones: both are not ready.
  http-request return status 503 content-type text/plain string "no API key was read yet" if { path /readyz } !{ str(keys),map_str_int(state.map) -m found }{{ if .v.oidc.enabled }} !{ str(token_keys),map_str_int(state.map) -m found }{{ end }}
  http-request set-var(txn.refreshed) str(refreshed),map_str_int(state.map)
  http-request set-var(txn.age) date,sub(txn.refreshed) if { var(txn.refreshed) -m found }
  http-request return status 200 content-type text/plain string ok if { path /readyz } { var(txn.age) -m int le {{ int .v.timeouts.keyMaxAgeSeconds }} }
  http-request return status 503 content-type text/plain lf-string "the API keys were not read for %[var(txn.age)] s" if { path /readyz }
  http-request return status 404 content-type text/plain string "available: /metrics, /metrics/tenants, /livez, /readyz"
{{- end }}
