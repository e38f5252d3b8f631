{{- define "gateway.configMetrics" -}}
frontend metrics
  bind {{ .v.listen.address }}:{{ int .v.listen.metricsPort }} proto h1
  http-request use-service prometheus-exporter if { path /metrics } { method GET }
  http-request return status 200 content-type text/plain string ok if { path /livez }
  # Without keys everybody would get 401: a pod that has read none is not ready.
  http-request return status 200 content-type text/plain string ok if { path /readyz } { str(keys),map_str(state.map) -m found }
  http-request return status 503 content-type text/plain string "no key was read yet" if { path /readyz }
  http-request return status 404 content-type text/plain string "/metrics, /livez, /readyz"
{{- end }}
