{{- /* Tokens per minute of a tenant. costs.lua reads what a request may cost, usage.lua counts the tokens of its response, buckets.lua
       keeps the buckets, and the rules read from a map when the next request may pass. Rendered only if a tenant has the limit. */ -}}

{{- /* Takes the values. */ -}}
{{- define "gateway.hasBuckets" -}}
{{- range .tenants }}
{{- if .tokensPerMinute }}true{{ end }}
{{- end }}
{{- end }}

{{- /* Measured for English text; a token of Chinese, or of rare characters, has fewer. */ -}}
{{- define "gateway.bytesPerToken" -}}
3
{{- end }}

{{- /* The longest time for which an overdrawn bucket refuses requests. */ -}}
{{- define "gateway.overdraftMinutes" -}}
10
{{- end }}

{{- define "gateway.loadBuckets" }}
{{- if include "gateway.hasBuckets" .v | trim }}
  lua-load buckets.lua {{ include "gateway.windowMs" . }} {{ include "gateway.overdraftMinutes" . }}
  lua-load-per-thread usage.lua {{ include "gateway.bytesPerToken" . }}
{{- end }}
{{- end }}

{{- define "gateway.limitTokens" }}
{{- if include "gateway.hasBuckets" .v | trim }}
  http-request set-var(txn.bucket) var(txn.tenant),map_str(limits.map),word(3,' ')
  http-request set-var(txn.passes_at) var(txn.tenant),map_str_int(buckets.map) if { var(txn.bucket) -m found }
  http-request set-var(txn.bucket_wait) var(txn.now),sub(txn.passes_at),neg if { var(txn.passes_at) -m found }
  {{- include "gateway.rateHeadersBucket" . }}
  acl is_overdrawn var(txn.bucket_wait) -m int gt 0
  http-request return {{ get .answers "tokens-exceeded" }} hdr retry-after %[var(txn.bucket_wait),add(999),div(1000)] if is_overdrawn
{{- end }}
{{- end }}

{{- /* Operations whose responses have `usage`. */ -}}
{{- define "gateway.countedOperations" -}}
{{- $found := list }}
{{- range $path, $operation := include "gateway.jsonOperations" . | fromJson }}
{{- if $operation.reports_usage }}
{{- $found = append $found $path }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{- /* The tokens of the prompt, estimated; usage.lua replaces them. They stay where the client leaves before the response, and
       where the model server does not answer in time: 408 is Serve's. A compressed response could not be read. */ -}}
{{- define "gateway.countTokens" }}
{{- if include "gateway.hasBuckets" .v | trim }}
  filter lua.usage
  acl has_bucket var(txn.bucket) -m found
  acl is_counted var(txn.operation) -m str {{ include "gateway.countedOperations" . | fromJsonArray | join " " }}
  http-request lua.read_cost if has_bucket is_counted
  http-request del-header accept-encoding if has_bucket is_counted
  http-response unset-var(txn.tokens) if { status ge 400 } !{ status 408 }
  # HAProxy's own 400 means that the client has left, its 504 that the model server still works.
  http-after-response unset-var(txn.tokens) if { status 500 502 503 }
{{- end }}
{{- end }}

{{- /* A field of the log format: the tokens of a request that were counted, and `-` for other requests. */ -}}
{{- define "gateway.logTokens" -}}
{{- if include "gateway.hasBuckets" .v | trim -}}
{{- $counted := "var(txn.tokens),concat(:,sess.ended,:),concat(,txn.tenant),concat(,txn.excess),lua.count_tokens" -}}
,"tokens":"%[{{ $counted }}]"
{{- end }}
{{- end }}

{{- /* The date of the log line, at which the tokens are counted. A malformed request has no transaction, so the variable is that of
       the session. */ -}}
{{- define "gateway.logDate" -}}
date{{ if include "gateway.hasBuckets" .v | trim }}(0,ms),set-var(sess.ended),div(1000){{ end }}
{{- end }}
