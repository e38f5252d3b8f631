{{- /* The frontend for clients. Each part is one step; the first step that refuses a request answers it.
       Takes (dict root v errors operations). */ -}}
{{- define "gateway.configFrontend" -}}
frontend http
  # HTTP/1 only: each connection carries one request at a time, so `limits.connections` bounds the memory.
  bind {{ .v.listen.address }}:{{ int .v.listen.port }} proto h1{{ include "gateway.bindTls" .v }}
  maxconn {{ int .v.limits.connections }}
  option idle-close-on-response
  {{- include "gateway.frontendSources" .v | trim | nindent 2 }}
  option http-restrict-req-hdr-names delete
  {{- include "gateway.frontendLog" . | nindent 2 }}
  {{- include "gateway.frontendIdentity" . | nindent 2 }}
  {{- include "gateway.frontendLimits" . | nindent 2 }}
  {{- with include "gateway.frontendRemote" . }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  {{- include "gateway.frontendRoute" . | nindent 2 }}
  {{- include "gateway.frontendBody" . | nindent 2 }}
  {{- include "gateway.frontendModel" . | nindent 2 }}
  {{- with include "gateway.refuseRemote" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "gateway.frontendCircuit" . }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  {{- with include "gateway.frontendBuckets" . }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  {{- with include "gateway.frontendSessions" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "gateway.frontendTrace" .v }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  {{- include "gateway.frontendUpstream" . | trim | nindent 2 }}
  {{- with include "gateway.usageHeaders" . | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- include "gateway.countRefusals" . | trim | nindent 2 }}

{{ include "gateway.configTenants" . }}

{{ include "gateway.configRates" . }}
{{- end }}

{{- /* One line of JSON per request. It holds values of our own maps, numbers, and a request id of safe characters. */ -}}
{{- define "gateway.frontendLog" -}}
# Requests are logged on stdout, everything else on stderr.
log stdout format raw local0 info
log-format '{"time":"%[{{ include "gateway.logDate" .v }},utime(%Y-%m-%dT%H:%M:%SZ)]","request_id":"%[var(txn.id)]","client":"%ci","tenant":"%[var(txn.tenant)]","key":"%[var(txn.key),word(2,/)]","model":"%[var(txn.model)]","version":"%[var(txn.version)]","operation":"%[var(txn.operation)]","endpoint":"%s","status":%ST,"request_bytes":%U,"response_bytes":%B,"read_ms":%TR,"connect_ms":%Tc,"first_byte_ms":%Tr,"total_ms":%Ta,"retries":"%rc","termination_state":"%ts"{{ if .v.tracing.enabled }},"trace_id":"%[var(txn.trace_id)]","sampled":"%[var(txn.sampled)]"{{ end }}{{ include "gateway.logCircuit" .v | trim }}{{ include "gateway.logBuckets" .v | trim }}{{ include "gateway.logRemote" .v | trim }}}'
{{- end }}

{{- /* A key is looked up by its hash. keys.map has TENANT/NAME for each hash; keys.lua keeps it equal to the Secrets. */ -}}
{{- define "gateway.frontendIdentity" -}}
http-request set-var(txn.id) req.fhdr(x-request-id) if { req.fhdr_cnt(x-request-id) eq 1 } { req.fhdr(x-request-id) -m reg ^[A-Za-z0-9._-]{1,64}$ }
http-request set-var(txn.id) uuid unless { var(txn.id) -m found }
http-after-response set-header x-request-id %[var(txn.id)]
{{- include "gateway.frontendOpenapi" (merge (dict "access" "Public") .) }}
http-request set-var(txn.key) req.fhdr(authorization),bytes(7),sha2(256),hex,map_str(keys.map) if { req.fhdr_cnt(authorization) eq 1 } { req.fhdr(authorization) -m beg -i "bearer " }
{{- include "gateway.frontendTokens" . }}
http-request track-sc0 str(-) table tenants unless { var(txn.key) -m found }
{{- include "gateway.refuseTokens" . }}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "key-invalid") }} unless { var(txn.key) -m found }
http-request set-var(txn.tenant) var(txn.key),word(1,/)
{{- if include "gateway.limitsSources" .v }}
http-request track-sc3 src,ipmask(32,64) table source_requests
{{- end }}
{{- end }}

{{- define "gateway.frontendLimits" -}}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "url-too-long") }} if { url,length gt {{ int .v.limits.headerBytes }} }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "headers-too-large") }} if { req.hdrs,length gt {{ int .v.limits.headerBytes }} }
# Refused requests are not counted.
http-request set-var(txn.concurrency) var(txn.tenant),map_str_int(concurrency-limits.map)
http-request track-sc0 var(txn.tenant) table tenants
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "concurrency-exceeded" "header" "retry-after 1") }} if { sc_conn_cur(0),sub(txn.concurrency) gt 0 }
{{- include "gateway.frontendRates" . | nindent 0 }}
{{- end }}

