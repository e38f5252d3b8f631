{{- /* Limits of the tenants. */ -}}

{{- /* Number of pods that always run. Each pod counts on its own, so a tenant's limit is divided by it and rounded up. */ -}}
{{- define "gateway.pods" -}}
{{ ternary .replicas .autoscaling.minReplicas (eq .autoscaling.kind "None") | int }}
{{- end }}

{{- /* Limits of one pod by tenant, as JSON: a remote gateway has counted its tenants. */ -}}
{{- define "gateway.limits" -}}
{{- $pods := include "gateway.pods" .v | int }}
{{- $limits := dict }}
{{- range $name, $tenant := .v.tenants }}
{{- $limit := dict "rate" (divf $tenant.requestsPerMinute $pods | ceil | int64 | toString) }}
{{- $_ := set $limit "concurrency" (divf $tenant.concurrency $pods | ceil | int64 | toString) }}
{{- with $tenant.tokensPerMinute }}
{{- $_ := set $limit "tokens" (divf . $pods | ceil | int64 | toString) }}
{{- end }}
{{- $_ := set $limits $name $limit }}
{{- end }}
{{- range $name, $_ := .v.remoteGateways }}
{{- $_ := set $limits (printf "@%s" $name) (dict "rate" "1000000000" "concurrency" "1000000") }}
{{- end }}
{{- toJson $limits }}
{{- end }}

{{- /* TENANT RATE CONCURRENCY, and TOKENS if the tenant has that limit. */ -}}
{{- define "gateway.mapLimits" -}}
{{- range $name, $limit := include "gateway.limits" . | fromJson }}
{{ $name }} {{ $limit.rate }} {{ $limit.concurrency }}{{ with get $limit "tokens" }} {{ . }}{{ end }}
{{- end }}
{{- end }}

{{- /* The first two as maps of their own, because the rules read them for each request. */ -}}
{{- define "gateway.mapRateLimits" -}}
{{- range $name, $limit := include "gateway.limits" . | fromJson }}
{{ $name }} {{ $limit.rate }}
{{- end }}
{{- end }}

{{- define "gateway.mapConcurrencyLimits" -}}
{{- range $name, $limit := include "gateway.limits" . | fromJson }}
{{ $name }} {{ $limit.concurrency }}
{{- end }}
{{- end }}

{{- define "gateway.mapTenants" -}}
{{- range $name, $_ := .v.tenants }}
{{ $name }}
{{- end }}
{{- range $name, $_ := .v.remoteGateways }}
@{{ $name }}
{{- end }}
{{- end }}
