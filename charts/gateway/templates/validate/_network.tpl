{{- define "gateway.validateNetwork" -}}
{{- $v := . }}
{{- $policy := .networkPolicy }}
{{- if not (or $policy.enabled $policy.reason) }}
{{- include "gateway.refuse" (dict "v" $v "id" "network-policy-reason" "words" dict) }}
{{- end }}
{{- if and $policy.enabled (not (or $policy.dns.peer.namespace $policy.dns.cidrs)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "dns-egress" "words" dict) }}
{{- end }}
{{- $inside := list }}
{{- $outside := list }}
{{- range $policy.allowedClients }}
{{- $inside = append $inside (include "gateway.peer" .) }}
{{- $outside = concat $outside .cidrs }}
{{- end }}
{{- if and $policy.enabled (ne .service.type "ClusterIP") (not $outside) }}
{{- include "gateway.refuse" (dict "v" $v "id" "service-clients" "words" (dict "type" .service.type)) }}
{{- end }}
{{- $route := .exposure }}
{{- if ne $route.kind "None" }}
{{- if not $route.hosts }}
{{- include "gateway.refuse" (dict "v" $v "id" "exposure-hosts" "words" (dict "kind" $route.kind)) }}
{{- end }}
{{- if and (eq $route.kind "HTTPRoute") (not $route.httpRoute.parent.name) }}
{{- include "gateway.refuse" (dict "v" $v "id" "exposure-parent" "words" dict) }}
{{- end }}
{{- if and (eq $route.kind "TLS") (not $route.tls.secretNames) }}
{{- include "gateway.refuse" (dict "v" $v "id" "exposure-certificate" "words" dict) }}
{{- end }}
{{- if and (eq $route.kind "Ingress") (not (or $route.ingress.tlsSecret $route.ingress.tlsReason)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "exposure-tls" "words" dict) }}
{{- end }}
{{- if and $policy.enabled (not (concat (compact $inside) $outside)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "exposure-clients" "words" (dict "kind" $route.kind)) }}
{{- end }}
{{- end }}
{{- end }}
