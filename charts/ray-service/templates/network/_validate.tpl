{{- define "ray-service.validateNetwork" -}}
{{- $policy := .networkPolicy }}
{{- if not $policy.enabled }}
{{- if not $policy.reason }}
{{- include "ray-service.refuse" (list . "network-policy-reason" dict) }}
{{- end }}
{{- else }}
{{- if and .autoscaler.enabled (not $policy.apiServer.cidrs) }}
{{- include "ray-service.refuse" (list . "api-server-cidrs" dict) }}
{{- end }}
{{- if not (or $policy.dns.peer.namespace $policy.dns.cidrs) }}
{{- include "ray-service.refuse" (list . "dns-egress" dict) }}
{{- end }}
{{- if and .gcsFaultTolerance.enabled (not (or $policy.redis.peer.namespace $policy.redis.cidrs)) }}
{{- include "ray-service.refuse" (list . "redis-egress" dict) }}
{{- end }}
{{- end }}
{{- end }}
