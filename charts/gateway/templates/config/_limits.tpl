{{- /* Limits of the tenants. */ -}}

{{- /* Number of pods that always run. Each pod counts on its own, so a tenant's limit is divided by it and rounded up. */ -}}
{{- define "gateway.pods" -}}
{{ ternary .replicas .autoscaling.minReplicas (eq .autoscaling.kind "None") | int }}
{{- end }}

{{- /* Requests per minute, concurrent requests, and tokens per minute if the tenant has that limit, of one pod. */ -}}
{{- define "gateway.mapLimits" -}}
{{- $pods := include "gateway.pods" .v | int }}
{{- range $name, $tenant := .v.tenants }}
{{ $name }} {{ divf $tenant.requestsPerMinute $pods | ceil | int }} {{ divf $tenant.concurrency $pods | ceil | int }}{{ with $tenant.tokensPerMinute }} {{ divf . $pods | ceil | int64 }}{{ end }}
{{- end }}
{{- range $name, $_ := .v.remoteGateways }}
@{{ $name }} 1000000000 1000000
{{- end }}
{{- end }}

{{- /* The first two as maps of their own, because the rules read them for each request. */ -}}
{{- define "gateway.mapRateLimits" -}}
{{- range include "gateway.mapLimits" . | trim | splitList "\n" }}
{{ regexReplaceAll "^(\\S+) (\\S+) .*" . "${1} ${2}" }}
{{- end }}
{{- end }}

{{- define "gateway.mapConcurrencyLimits" -}}
{{- range include "gateway.mapLimits" . | trim | splitList "\n" }}
{{ regexReplaceAll "^(\\S+) \\S+ (\\S+).*" . "${1} ${2}" }}
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
