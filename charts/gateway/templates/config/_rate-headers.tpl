{{- /* The limits of a tenant in the headers of OpenAI (`rateLimitHeaders`), from the same counts as the rules of
       _rates.tpl and _buckets.tpl. Rendered only if enabled. */ -}}

{{- /* Before a request is counted: how many more would pass now, rounded up as the rule does. */ -}}
{{- define "gateway.rateHeadersBefore" }}
{{- if .v.rateLimitHeaders.enabled }}
{{- $window := include "gateway.windowMs" . }}
{{- $left := printf "var(txn.rate),sub(txn.used),mul(%s),sub(txn.weighted),add(%s),sub(1),div(%s)" $window $window $window }}
  http-request set-var(txn.used) sc_get_gpc0(4){{ if .v.remoteGateways }} unless { var(txn.tenant) -m beg @ }{{ end }}
  http-request set-var(txn.left_requests) {{ $left }} if { var(txn.used) -m found }
  acl has_left_requests var(txn.left_requests) -m found
  http-request set-var(txn.left_requests) int(0) if has_left_requests is_above_rate
{{- end }}
{{- end }}

{{- /* After it was counted. */ -}}
{{- define "gateway.rateHeadersAfter" }}
{{- if .v.rateLimitHeaders.enabled }}
  http-request set-var(txn.used) var(txn.used),add(1) if has_left_requests
  http-request set-var(txn.left_requests) var(txn.left_requests),sub(1) if has_left_requests
{{- end }}
{{- end }}

{{- /* Milliseconds that the bucket was filled for: between 0 and a minute. */ -}}
{{- define "gateway.rateHeadersBucket" }}
{{- if .v.rateLimitHeaders.enabled }}
{{- $window := include "gateway.windowMs" . }}
  acl has_left_tokens var(txn.filled) -m found
  http-request set-var(txn.filled) int({{ $window }}) if { var(txn.bucket) -m found } has_left_requests
  http-request set-var(txn.filled) var(txn.bucket_wait),neg if has_left_tokens { var(txn.bucket_wait),add({{ $window }}) gt 0 }
  http-request set-var(txn.filled) int(0) if has_left_tokens { var(txn.filled) -m int lt 0 }
{{- end }}
{{- end }}

{{- /* A duration as OpenAI writes it, in whole seconds that are rounded up. Takes (dict header variable condition). */ -}}
{{- define "gateway.rateHeadersReset" }}
{{- include "gateway.arguments" (dict "template" "gateway.rateHeadersReset" "given" . "names" (list "header" "variable" "condition")) }}
{{- $seconds := printf "var(txn.%s),add(999),div(1000)" .variable }}
  http-after-response set-header {{ .header }} %[{{ $seconds }}]s if {{ .condition }} { {{ $seconds }} lt 60 }
  http-after-response set-header {{ .header }} %[{{ $seconds }},div(60)]m%[{{ $seconds }},mod(60)]s if {{ .condition }} { {{ $seconds }} ge 60 }
{{- end }}

{{- /* A count is without effect again when it is multiplied with less than a whole window divided by itself. */ -}}
{{- define "gateway.rateHeaders" }}
{{- if .v.rateLimitHeaders.enabled }}
{{- $window := include "gateway.windowMs" . }}
{{- $reset := printf "int(%s),sub(1),div(txn.%%s),neg,add(txn.window_left)" $window }}
{{- $next := printf "%s,add(%s)" (printf $reset "used") $window }}
  http-after-response set-header x-ratelimit-limit-requests %[var(txn.rate)] if has_left_requests
  http-after-response set-header x-ratelimit-remaining-requests %[var(txn.left_requests)] if has_left_requests
  acl has_used var(txn.used) -m int gt 0
  acl has_before var(txn.count_before) -m int gt 0
  http-after-response set-var(txn.reset_requests) int(0) if has_left_requests
  http-after-response set-var(txn.reset_requests) {{ printf $reset "count_before" }} if has_left_requests !has_used has_before
  http-after-response set-var(txn.reset_requests) {{ $next }} if has_left_requests has_used
  http-after-response set-var(txn.reset_requests) int(0) if has_left_requests { var(txn.reset_requests) -m int lt 0 }
{{- $of := dict "header" "x-ratelimit-reset-requests" "variable" "reset_requests" "condition" "has_left_requests" }}
{{- include "gateway.rateHeadersReset" $of }}
{{- if include "gateway.hasBuckets" .v | trim }}
  http-after-response set-header x-ratelimit-limit-tokens %[var(txn.bucket)] if has_left_tokens
  http-after-response set-header x-ratelimit-remaining-tokens %[var(txn.filled),mul(txn.bucket),div({{ $window }})] if has_left_tokens
  http-after-response set-var(txn.reset_tokens) var(txn.filled),neg,add({{ $window }}) if has_left_tokens
  http-after-response set-var(txn.reset_tokens) var(txn.bucket_wait),add({{ $window }}) if has_left_tokens { var(txn.bucket_wait) -m int gt 0 }
{{- $of := dict "header" "x-ratelimit-reset-tokens" "variable" "reset_tokens" "condition" "has_left_tokens" }}
{{- include "gateway.rateHeadersReset" $of }}
{{- end }}
{{- end }}
{{- end }}
