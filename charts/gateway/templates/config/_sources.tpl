{{- /* Connections that one client address may hold without a request that has a valid key: idle ones, and those whose headers
       are incomplete. HAProxy has no request before the headers are complete, so these rules are the first that can refuse.
       An address of IPv6 is its /64 network. */ -}}

{{- define "gateway.limitsSources" -}}
{{- if lt (int .limits.sourceIdlePercent) 100 }}true{{ end }}
{{- end }}

{{- define "gateway.frontendSources" }}
{{- include "gateway.frontendBalancers" . }}
{{- if include "gateway.limitsSources" .v }}
{{- $address := .v.clientAddress }}
{{- $trusted := $address.forwardedForCidrs | empty | ternary "" " !from_forwarder" }}
{{- $direct := $address.proxyProtocolCidrs | empty | ternary "" " !from_proxy" }}
{{- include "gateway.sourceRules" (dict "v" .v "level" "connection" "if" (print $direct $trusted)) }}
{{- if $address.forwardedForCidrs }}
  # The connection of a request counts for this address.
  tcp-request session set-var(sess.peer) src
{{- end }}
{{- if $address.proxyProtocolCidrs }}
{{- /* Only here HAProxy has read the client's address. */}}
{{- include "gateway.sourceRules" (dict "v" .v "level" "session" "if" (print " { var(sess.proxied) -m found }" $trusted)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes a dict: v, level of the rules, if (conditions with a space before them, or empty). */ -}}
{{- define "gateway.sourceRules" }}
{{- include "gateway.arguments" (dict "template" "gateway.sourceRules" "given" . "names" (list "v" "level" "if")) }}
{{- $connections := int .v.limits.connections }}
{{- $idle := div (mul $connections .v.limits.sourceIdlePercent) 100 | max 1 }}
{{- $only := .if | empty | ternary "" (printf " if%s" .if) }}
  tcp-request {{ .level }} set-var(sess.requests) src,ipmask(32,64),table_conn_cur(source_requests){{ $only }}
  tcp-request {{ .level }} track-sc2 src,ipmask(32,64) table sources{{ $only }}
  tcp-request {{ .level }} reject if { sc_conn_cur(2),sub(sess.requests) gt {{ $idle }} }{{ .if }}
  # With three quarters of all connections in use, a fifth of that.
  {{- $few := div $idle 5 | max 1 }}
  tcp-request {{ .level }} reject if { fe_conn gt {{ div (mul 3 $connections) 4 }} } { sc_conn_cur(2),sub(sess.requests) gt {{ $few }} }{{ .if }}
{{- end }}

{{- define "gateway.trackSource" }}
{{- if include "gateway.limitsSources" .v }}
{{- $source := .v.clientAddress.forwardedForCidrs | empty | ternary "src" "var(sess.peer)" }}
  http-request track-sc3 {{ $source }},ipmask(32,64) table source_requests
{{- end }}
{{- end }}

{{- define "gateway.sourceTables" }}
{{- if include "gateway.limitsSources" .v }}
{{- $size := mul 2 (int .v.limits.connections) }}

# Connections by client address, and requests in flight with a valid key.
backend sources
  stick-table type ipv6 size {{ $size }} expire 10s store conn_cur

backend source_requests
  stick-table type ipv6 size {{ $size }} expire 10s store conn_cur
{{- end }}
{{- end }}
