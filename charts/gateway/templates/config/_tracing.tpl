{{- /* Trace id and sampling of a request. HAProxy makes no spans: its filters for that are options of
       the build that neither the official image nor the wheel has. */ -}}

{{- /* The ids are parts of a hash, because bits of a UUID are fixed. Headers of clients decide nothing about sampling. */ -}}
{{- define "gateway.startTrace" }}
{{- if .v.tracing.enabled }}
{{- $continues := eq .v.tracing.clientTraces "Continue" }}
{{- $isNew := ternary " unless is_continued" "" $continues }}

  # The trace.
  http-request set-var(txn.trace_hash) uuid,sha2(256),hex,lower
{{- if $continues }}
  # W3C Trace Context: version, trace id, span id, flags. An id of zeros is invalid.
  acl is_continued var(txn.continued) -m found
  acl is_one_trace req.fhdr_cnt(traceparent) eq 1
  acl is_trace req.fhdr(traceparent) -m reg ^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$
  acl is_zero_trace req.fhdr(traceparent) -m beg 00-00000000000000000000000000000000-
  acl is_zero_trace req.fhdr(traceparent) -m sub -- -0000000000000000-
  http-request set-var(txn.continued) req.fhdr(traceparent) if is_one_trace is_trace !is_zero_trace
  http-request set-var(txn.trace_id) var(txn.continued),bytes(3,32) if is_continued
  http-request set-var(txn.parent_id) var(txn.continued),bytes(36,16) if is_continued
{{- end }}
  http-request set-var(txn.trace_id) var(txn.trace_hash),bytes(0,32){{ $isNew }}
  http-request set-var(txn.parent_id) var(txn.trace_hash),bytes(32,16){{ $isNew }}
  http-request set-var(txn.sampled) str(00)
  http-request set-var(txn.sampled) str(01) if { rand(1000000) lt {{ mulf .v.tracing.samplingRatio 1000000 | printf "%.0f" }} }
{{- end }}
{{- end }}

{{- /* With x-rayhelm-new-trace, the proxy of Serve makes the first span: no span has the id of `traceparent`. */ -}}
{{- define "gateway.traceHeaders" }}
{{- if .v.tracing.enabled }}
  http-request set-header traceparent 00-%[var(txn.trace_id)]-%[var(txn.parent_id)]-%[var(txn.sampled)]
  http-request set-header x-rayhelm-new-trace 1{{ if eq .v.tracing.clientTraces "Continue" }} unless is_continued{{ end }}
{{- end }}
{{- end }}
