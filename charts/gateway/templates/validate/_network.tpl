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
{{- $service := .service }}
{{- if and $service.externalTrafficPolicy (eq $service.type "ClusterIP") }}
{{- include "gateway.refuse" (dict "v" $v "id" "external-traffic-policy" "words" dict) }}
{{- end }}
{{- if and $service.loadBalancerSourceRanges (ne $service.type "LoadBalancer") }}
{{- include "gateway.refuse" (dict "v" $v "id" "source-ranges" "words" (dict "type" $service.type)) }}
{{- end }}
{{- range $key := list "proxyProtocolCidrs" "forwardedForCidrs" }}
{{- $bad := list }}
{{- $kept := list }}
{{- range get $v.clientAddress $key }}
{{- if hasSuffix "/0" . }}
{{- $bad = append $bad (dict "name" .) }}
{{- else }}
{{- $kept = append $kept . }}
{{- end }}
{{- end }}
{{- $words := dict "key" $key "kept" ($kept | default (list "10.0.0.0/24") | toJson) }}
{{- include "gateway.refuseEntries" (dict "v" $v "id" "client-address-all" "bad" $bad "words" $words) }}
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
