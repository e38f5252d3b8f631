{{- /* The tokens of a response in its headers (`usageHeaders`), from `usage` in its body: for one JSON document with its length.
       The gateway waits for the rest of it. Rendered only if enabled. */ -}}

{{- /* Within a buffer. */ -}}
{{- define "gateway.usageBytes" -}}
{{ min 65536 (int .limits.bodyBytes) }}
{{- end }}

{{- /* HAProxy answers 504 when the time of `wait-for-body` ends, so it is as long as possible: without data from the server,
       `timeout server` ends the wait. A number at the end of an incomplete document is not read, because it could be longer,
       and because `json_query` (2.8) reads a number beyond the end. */ -}}
{{- define "gateway.usageHeaders" }}
{{- if .v.usageHeaders.enabled }}
  acl reports_usage var(txn.operation) -m str {{ include "gateway.countedOperations" . | fromJsonArray | join " " }}
  acl is_json_document res.fhdr(content-type) -m reg -i ^application/json[\ \t]*(;|$)
  acl has_one_length res.fhdr_cnt(content-length) eq 1
  acl is_encoded res.fhdr_cnt(content-encoding) gt 0
  http-response set-var(txn.document) res.fhdr(content-length) if { status 200 } reports_usage is_json_document has_one_length !is_encoded
  acl is_closed_document res.body,rtrim(" \t\r\n") -m end }
  acl is_short_document var(txn.document) -m int 1:{{ include "gateway.usageBytes" .v }}
  acl is_whole_document res.body_len,sub(txn.document) eq 0
  http-response wait-for-body time 20d if is_short_document
  http-response set-var(txn.usage_total) res.body,json_query('$.usage.total_tokens','int') if is_short_document is_whole_document is_closed_document
  acl has_usage var(txn.usage_total) -m int ge 0
  http-response set-var(txn.usage_prompt) res.body,json_query('$.usage.prompt_tokens','int') if has_usage
  http-response set-var(txn.usage_completion) res.body,json_query('$.usage.completion_tokens','int') if has_usage
{{- range list "prompt" "completion" "total" }}
  http-response set-header x-usage-{{ . }}-tokens %[var(txn.usage_{{ . }})] if { var(txn.usage_{{ . }}) -m int ge 0 }
{{- end }}
{{- end }}
{{- end }}
