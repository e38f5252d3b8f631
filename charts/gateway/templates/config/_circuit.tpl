{{- /* The circuit: a JSON request whose connections closed without a response, as when it ends its servers, is refused for a
       time. Each tenant has its own hashes, so one tenant cannot stop the requests of another. */ -}}

{{- /* The first argument is how many connections a lost request has closed: it may have been retried. */ -}}
{{- define "gateway.loadCircuit" }}
{{- with .v.circuit }}
{{- if .enabled }}
  lua-load circuit.lua {{ $.v.retries.emptyResponse | ternary 2 1 }} {{ int .lostConnections }} {{ int .stopSeconds }}
{{- end }}
{{- end }}
{{- end }}

{{- /* txn.sent has the key of a request that has no response yet. A 502 of HAProxy itself is none; it runs no rule of
       `http-response`. */ -}}
{{- define "gateway.stopRequests" }}
{{- if .v.circuit.enabled }}
{{- $errors := .v.circuit.serverErrors }}
  http-request set-var(txn.hash) req.body,xxh3 if is_json
  http-request set-var(txn.sent) var(txn.tenant),concat(:,txn.model),concat(:,txn.hash) if is_json
  http-request set-var(txn.stopped_until) var(txn.sent),map_str_int(circuit.map) if is_json
  http-request set-var(txn.stop_left) date,sub(txn.stopped_until),neg if { var(txn.stopped_until) -m found }
  http-request return {{ get .answers "request-stopped" }} hdr retry-after %[var(txn.stop_left)] if { var(txn.stop_left) -m int gt 0 }
  http-response unset-var(txn.sent){{ if $errors }} unless { status 500 }{{ end }}
  http-after-response unset-var(txn.sent) unless { status {{ if $errors }}500 {{ end }}502 }
{{- end }}
{{- end }}
