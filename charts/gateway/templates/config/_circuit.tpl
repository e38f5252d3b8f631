{{- /* The circuit: a JSON request whose connections closed without a response, as when it ends its servers, is refused for a
       time. Each tenant has its own hashes, so one tenant cannot stop the requests of another. */ -}}

{{- /* Connections that a lost request has closed: it may have been retried. */ -}}
{{- define "gateway.lostConnections" -}}
{{ .retries.emptyResponse | ternary 2 1 }}
{{- end }}

{{- define "gateway.loadCircuit" -}}
{{- if .circuit.enabled }}
lua-load circuit.lua {{ include "gateway.lostConnections" . }} {{ int .circuit.lostConnections }} {{ int .circuit.stopSeconds }}
{{- end }}
{{- end }}

{{- /* txn.sent has the key of a request that has no response yet. A 502 of HAProxy itself is none; it runs no rule of
       `http-response`. */ -}}
{{- define "gateway.frontendCircuit" -}}
{{- if .v.circuit.enabled }}
http-request set-var(txn.hash) req.body,xxh3 if is_json
http-request set-var(txn.sent) var(txn.tenant),concat(:,txn.model),concat(:,txn.hash) if is_json
http-request set-var(txn.stopped_until) var(txn.sent),map_str_int(circuit.map) if is_json
http-request set-var(txn.stop_left) date,sub(txn.stopped_until),neg if { var(txn.stopped_until) -m found }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "request-stopped" "header" "retry-after %[var(txn.stop_left)]") }} if { var(txn.stop_left) -m int gt 0 }
http-response unset-var(txn.sent){{ if .v.circuit.serverErrors }} unless { status 500 }{{ end }}
http-after-response unset-var(txn.sent) unless { status {{ if .v.circuit.serverErrors }}500 {{ end }}502 }
{{- end }}
{{- end }}

{{- /* A field of the log format: `lost` or `stopped`, and `-` for other requests. */ -}}
{{- define "gateway.logCircuit" -}}
{{- if .circuit.enabled }},"circuit":"%[var(txn.sent),lua.count_lost]"{{ end }}
{{- end }}
