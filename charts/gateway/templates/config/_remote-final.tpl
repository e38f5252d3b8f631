{{- /* Responses that a remote gateway sends to its client instead of a retry at another gateway: refusals of the model server,
       errors that this gateway has retried, and requests that the circuit stops. */ -}}
{{- define "gateway.markFinal" }}
{{- if .v.remoteGateways }}
  http-response set-header x-rayhelm-final yes if is_remote { status 401 403 404 500 }
{{- if .v.circuit.enabled }}
  http-after-response set-header x-rayhelm-final yes if is_remote { var(txn.stop_left) -m int gt 0 }
{{- end }}
{{- end }}
{{- end }}

{{- /* Rules of the backend of a version for the status of a remote gateway's response. */ -}}
{{- define "gateway.remoteStatus" }}
  # Only if no retry is left.
  http-response set-status 503 if { status 500 } { res.hdr(x-rayhelm-reason) -m str remote_failed }
  http-response set-status 500 if { status 502 } { res.hdr(x-rayhelm-final) -m found }
{{- end }}
