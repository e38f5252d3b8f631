{{- define "gateway.validateNetwork" -}}
{{- $policy := .networkPolicy }}
{{- if not (or $policy.enabled $policy.reason) }}
{{- include "gateway.refuse" (list "network-policy-reason" dict) }}
{{- end }}
{{- if and $policy.enabled (not (or $policy.dns.peer.namespace $policy.dns.cidrs)) }}
{{- include "gateway.refuse" (list "dns-egress" dict) }}
{{- end }}
{{- $route := .exposure }}
{{- if ne $route.kind "None" }}
{{- if not $route.hosts }}
{{- include "gateway.refuse" (list "exposure-hosts" (dict "kind" $route.kind)) }}
{{- end }}
{{- if and (eq $route.kind "HTTPRoute") (not $route.httpRoute.parent.name) }}
{{- include "gateway.refuse" (list "exposure-parent" dict) }}
{{- end }}
{{- if and (eq $route.kind "Ingress") (not (or $route.ingress.tlsSecret $route.ingress.tlsReason)) }}
{{- include "gateway.refuse" (list "exposure-tls" dict) }}
{{- end }}
{{- $callers := list }}
{{- range $policy.callers }}
{{- $callers = append $callers .namespace }}
{{- end }}
{{- if and $policy.enabled (not (compact $callers)) }}
{{- include "gateway.refuse" (list "exposure-callers" (dict "kind" $route.kind)) }}
{{- end }}
{{- end }}
{{- end }}
