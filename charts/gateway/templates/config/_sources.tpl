{{- /* Connections that one client address may hold without a request that has a valid key: idle ones, and those whose headers
       are incomplete. HAProxy has no request before the headers are complete, so these rules are the first that can refuse.
       An address of IPv6 is its /64 network. */ -}}

{{- define "gateway.limitsSources" -}}
{{- if lt (int .limits.sourceIdlePercent) 100 }}true{{ end }}
{{- end }}

{{- define "gateway.frontendSources" -}}
{{- if include "gateway.limitsSources" . }}
{{- $connections := int .limits.connections }}
{{- $idle := div (mul $connections .limits.sourceIdlePercent) 100 | max 1 }}
tcp-request connection set-var(sess.requests) src,ipmask(32,64),table_conn_cur(source_requests)
tcp-request connection track-sc2 src,ipmask(32,64) table sources
tcp-request connection reject if { sc_conn_cur(2),sub(sess.requests) gt {{ $idle }} }
# With three quarters of all connections in use, a fifth of that.
tcp-request connection reject if { fe_conn gt {{ div (mul 3 $connections) 4 }} } { sc_conn_cur(2),sub(sess.requests) gt {{ div $idle 5 | max 1 }} }
{{- end }}
{{- end }}

{{- define "gateway.configSources" -}}
{{- with .v }}
{{- if include "gateway.limitsSources" . }}
{{- $size := mul 2 (int .limits.connections) }}
# Connections by client address, and requests in flight with a valid key.
backend sources
  stick-table type ipv6 size {{ $size }} expire 10s store conn_cur

backend source_requests
  stick-table type ipv6 size {{ $size }} expire 10s store conn_cur
{{- end }}
{{- end }}
{{- end }}
