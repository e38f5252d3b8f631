{{- define "gateway.validateNetwork" -}}
{{- $policy := .networkPolicy }}
{{- if not (or $policy.enabled $policy.reason) }}
{{- include "gateway.refuse" (list "network-policy-reason" dict) }}
{{- end }}
{{- if and $policy.enabled (not (or $policy.dns.peer.namespace $policy.dns.cidrs)) }}
{{- include "gateway.refuse" (list "dns-egress" dict) }}
{{- end }}
{{- $inside := list }}
{{- $outside := list }}
{{- range $policy.allowedClients }}
{{- $inside = append $inside .namespace }}
{{- $outside = concat $outside .cidrs }}
{{- end }}
{{- if and $policy.enabled (ne .service.type "ClusterIP") (not $outside) }}
{{- include "gateway.refuse" (list "service-clients" (dict "type" .service.type)) }}
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
{{- if and $policy.enabled (not (concat (compact $inside) $outside)) }}
{{- include "gateway.refuse" (list "exposure-clients" (dict "kind" $route.kind)) }}
{{- end }}
{{- end }}
{{- end }}
