{{- /* The access log, and parts of the frontend that are expressions. */ -}}

{{- define "gateway.logFormat" -}}
{"time":"%[{{ include "gateway.logDate" . }},utime(%Y-%m-%dT%H:%M:%SZ)]","request_id":"%[var(txn.id)]","client":"%ci",
{{- /**/ -}} "tenant":"%[var(txn.tenant)]","key":"%[var(txn.key),word(2,/)]","model":"%[var(txn.model)]",
{{- /**/ -}} "version":"%[var(txn.version)]","operation":"%[var(txn.operation)]","endpoint":"%s","status":%ST,
{{- /**/ -}} "request_bytes":%U,"response_bytes":%B,"read_ms":%TR,"connect_ms":%Tc,"first_byte_ms":%Tr,"total_ms":%Ta,
{{- /**/ -}} "retries":"%rc","termination_state":"%ts"
{{- if .v.tracing.enabled }},"trace_id":"%[var(txn.trace_id)]","sampled":"%[var(txn.sampled)]"{{ end }}
{{- if .v.circuit.enabled }},"circuit":"%[var(txn.sent),lua.count_lost]"{{ end }}
{{- include "gateway.logTokens" . }}
{{- if .v.remoteGateways }},"remote":"%[var(txn.remote)]"{{ end }}}
{{- end }}

{{- define "gateway.hasBearer" -}}
{ req.fhdr_cnt(authorization) eq 1 } { req.fhdr(authorization) -m beg -i "bearer " }
{{- end }}

{{- /* Pattern of the names of headers that the request loses. The gateway read a JSON body as uncompressed, so the server has to
       read it the same way; Ray answers 500 without the type. */ -}}
{{- define "gateway.removedHeaders" -}}
{{- include "gateway.arguments" (dict "template" "gateway.removedHeaders" "given" . "names" (list "json")) -}}
{{- $names := list "authorization" "proxy-authorization" "cookie" "x-api-key" "api-key" "x-tenant" "x-model-version" -}}
{{- $names = concat $names (list "forwarded" "via" "x-real-ip" "x-session-id" "x-data-parallel-rank" "x-body-truncated") -}}
{{- $names = concat $names (list "endpoint-load-metrics-format" "traceparent" "tracestate" "baggage") -}}
{{- /* Hop-by-hop headers: with `connection` a client could name our headers, and the next hop would drop them. */ -}}
{{- $names = concat $names (list "connection" "upgrade" "http2-settings" "keep-alive" "proxy-connection" "te" "trailer") -}}
{{- if .json }}
{{- $names = concat $names (list "content-type" "content-encoding" "expect") -}}
{{- end }}
{{- $prefixes := list "x-rayhelm-" "x-forwarded-" "x-ray-" "x-serve-" "x-request-" "x-vllm-" -}}
^({{ join "|" $names }})$|^({{ join "|" $prefixes }})
{{- end }}
