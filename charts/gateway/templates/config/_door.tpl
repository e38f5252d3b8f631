{{- /* The frontend for clients: who asks, what for, and which version answers. Each part is one step; the first that
       refuses answers. Takes (dict root v errors operations). */ -}}
{{- define "gateway.configDoor" -}}
frontend door
  # HTTP/1 alone: a connection is a request then, and `limits.connections` bounds the memory.
  bind {{ .v.listen.address }}:{{ int .v.listen.port }} proto h1
  option idle-close-on-response
  option http-restrict-req-hdr-names delete
  {{- include "gateway.doorLog" . | nindent 2 }}
  {{- include "gateway.doorIdentity" . | nindent 2 }}
  {{- include "gateway.doorLimits" . | nindent 2 }}
  {{- include "gateway.doorRoute" . | nindent 2 }}
  {{- include "gateway.doorBody" . | nindent 2 }}
  {{- include "gateway.doorModel" . | nindent 2 }}
  {{- include "gateway.doorUpstream" . | trim | nindent 2 }}

{{ include "gateway.configTenants" . }}
{{- end }}

{{- /* One line of JSON for each request: what came out of our own maps, numbers, and a request id of safe letters. */ -}}
{{- define "gateway.doorLog" -}}
# stdout has the requests, stderr everything else.
log stdout format raw local0 info
log-format '{"time":"%[date,utime(%Y-%m-%dT%H:%M:%SZ)]","id":"%[var(txn.id)]","client":"%ci","tenant":"%[var(txn.tenant)]","key":"%[var(txn.owner),word(2,/)]","model":"%[var(txn.model)]","version":"%[var(txn.version)]","operation":"%[var(txn.operation)]","endpoint":"%s","status":%ST,"request_bytes":%U,"response_bytes":%B,"read_ms":%TR,"connect_ms":%Tc,"first_byte_ms":%Tr,"total_ms":%Ta,"retries":"%rc","end":"%ts"}'
{{- end }}

{{- /* Keys are known by their hashes: keys.map has tenant/name for each, and a Lua task keeps it as the Secrets say. */ -}}
{{- define "gateway.doorIdentity" -}}
http-request set-var(txn.id) req.fhdr(x-request-id) if { req.fhdr_cnt(x-request-id) eq 1 } { req.fhdr(x-request-id) -m reg ^[A-Za-z0-9._-]{1,64}$ }
http-request set-var(txn.id) uuid unless { var(txn.id) -m found }
http-after-response set-header x-request-id %[var(txn.id)]
http-request set-var(txn.owner) req.fhdr(authorization),bytes(7),sha2(256),hex,lower,map_str(keys.map) if { req.fhdr_cnt(authorization) eq 1 } { req.fhdr(authorization) -m beg -i "bearer " }
http-request return {{ include "gateway.answer" (list . "key-unknown") }} unless { var(txn.owner) -m found }
http-request set-var(txn.tenant) var(txn.owner),word(1,/)
{{- end }}

{{- define "gateway.doorLimits" -}}
http-request return {{ include "gateway.answer" (list . "url-too-long") }} if { url,length gt {{ int .v.limits.headerBytes }} }
http-request return {{ include "gateway.answer" (list . "headers-too-large") }} if { req.hdrs,length gt {{ int .v.limits.headerBytes }} }
# limits.map: requests a minute, requests at once, seconds to wait. What was refused is not counted.
http-request set-var(txn.limits) var(txn.tenant),map_str(limits.map)
http-request set-var(txn.rate) var(txn.limits),word(1,' ')
http-request set-var(txn.concurrency) var(txn.limits),word(2,' ')
http-request track-sc0 var(txn.tenant) table tenants
http-request return {{ include "gateway.answer" (list . "too-many-at-once" "retry-after 1") }} if { sc_conn_cur(0),sub(txn.concurrency) gt 0 }
http-request return {{ include "gateway.answer" (list . "too-many-a-minute" "retry-after %[var(txn.limits),word(3,' ')]") }} if { sc_gpc0_rate(0),sub(txn.rate) ge 0 }
http-request sc-inc-gpc0(0)
{{- end }}

{{- define "gateway.configTenants" -}}
backend tenants
  stick-table type string len 64 size {{ mul 2 (len .v.tenants) }} expire 2m store gpc0,gpc0_rate(60s),conn_cur
{{- end }}
