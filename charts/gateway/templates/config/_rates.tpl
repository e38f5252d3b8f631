{{- /* Requests per minute of a tenant. The count of a window of one minute, and that of the window before, weighted with the
       part of it that lies within the last minute. HAProxy's own rates work alike, but do not show the two counts, so the
       time until the next request passes cannot be computed from them. */ -}}

{{- define "gateway.windowMs" -}}
60000
{{- end }}

{{- define "gateway.limitRates" }}
{{- $window := include "gateway.windowMs" . }}
{{- /* The headers with the limits need the exact count of each request. */}}
{{- $near := ternary "" " if is_near_rate" .v.rateLimitHeaders.enabled }}
  http-request set-var(txn.now) date(0,ms)
  http-request set-var(txn.rate) var(txn.tenant),map_str_int(rate-limits.map)
  http-request track-sc4 var(txn.now),div({{ $window }}),concat(:,txn.tenant) table rates
  http-request set-var(txn.count_before) var(txn.now),div({{ $window }}),sub(1),concat(:,txn.tenant),table_gpc0(rates)
  # Most requests are below the limit even with all of the window before.
  http-request set-var(txn.near_rate) bool(true) if { sc_get_gpc0(4),add(txn.count_before),sub(txn.rate) ge 0 }
  acl is_near_rate var(txn.near_rate) -m found
  http-request set-var(txn.window_left) var(txn.now),mod({{ $window }}),neg,add({{ $window }}){{ $near }}
  http-request set-var(txn.weighted) var(txn.count_before),mul(txn.window_left){{ $near }}
  # The first count that is too high: count + before * left / window >= rate.
  acl is_full sc_get_gpc0(4),sub(txn.rate),mul({{ $window }}),add(txn.weighted) ge 0
  http-request set-var(txn.count) sc_get_gpc0(4) if is_near_rate is_full
  acl is_above_rate var(txn.count) -m found
  http-request set-var(txn.remaining) var(txn.rate),sub(txn.count) if is_above_rate
  acl has_remaining var(txn.remaining) -m int gt 0
  # Milliseconds until the condition is false: in this window, or in the next one.
  http-request set-var(txn.wait) var(txn.remaining),mul({{ $window }}),div(txn.count_before),neg,add(txn.window_left) if is_above_rate has_remaining
  http-request set-var(txn.wait) var(txn.rate),mul({{ $window }}),div(txn.count),neg,add(txn.window_left),add({{ $window }}) if is_above_rate !has_remaining
  {{- include "gateway.rateHeadersBefore" . }}
  http-request return {{ get .answers "rate-exceeded" }} hdr retry-after %[var(txn.wait),div(1000),add(1)] if is_above_rate
  {{- include "gateway.limitTokens" . }}
  http-request sc-inc-gpc0(4)
  {{- include "gateway.rateHeadersAfter" . }}
  {{- include "gateway.rateHeaders" . }}
{{- end }}
