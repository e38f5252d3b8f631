{{- define "tenant.validateNetwork" -}}
{{- $v := . }}
{{- $network := .networkPolicy }}
{{- if not (or $network.dns.peer.namespace $network.dns.cidrs) }}
{{- include "tenant.refuse" (dict "v" $v "id" "dns-egress" "words" dict) }}
{{- end }}
{{- range $name, $egress := $network.egress }}
{{- if include "tenant.isWithoutTarget" $egress }}
{{- include "tenant.refuse" (dict "v" $v "id" "egress-target" "words" (dict "name" $name)) }}
{{- end }}
{{- end }}
{{- with $network.redis.peer }}
{{- if and .namespace (not .podLabels) }}
{{- include "tenant.refuse" (dict "v" $v "id" "redis-pods" "words" (dict "namespace" .namespace)) }}
{{- end }}
{{- end }}
{{- range $name, $policy := $network.extraPolicies }}
{{- $words := dict "name" $name }}
{{- if not $policy.podLabels }}
{{- include "tenant.refuse" (dict "v" $v "id" "extra-policy-selector" "words" $words) }}
{{- end }}
{{- if and $policy.ingress.ports (not $policy.ingress.from) }}
{{- include "tenant.refuse" (dict "v" $v "id" "extra-policy-peers" "words" (merge (dict "side" "ingress" "key" "from" "peers" "{clients: {namespace: clients}}" "ports" (toJson $policy.ingress.ports)) $words)) }}
{{- end }}
{{- if and $policy.egress.ports (not $policy.egress.to) }}
{{- include "tenant.refuse" (dict "v" $v "id" "extra-policy-peers" "words" (merge (dict "side" "egress" "key" "to" "peers" "{database: {cidrs: [10.0.0.1/32]}}" "ports" (toJson $policy.egress.ports)) $words)) }}
{{- end }}
{{- if not (or $policy.ingress.from $policy.egress.to) }}
{{- include "tenant.refuse" (dict "v" $v "id" "extra-policy-empty" "words" $words) }}
{{- end }}
{{- if and $policy.egress.to (not $policy.egress.ports) }}
{{- include "tenant.refuse" (dict "v" $v "id" "extra-policy-ports" "words" $words) }}
{{- end }}
{{- range $from, $peer := $policy.ingress.from }}
{{- if not (include "tenant.peer" $peer) }}
{{- include "tenant.refuse" (dict "v" $v "id" "extra-policy-client" "words" (merge (dict "peer" $from) $words)) }}
{{- end }}
{{- end }}
{{- range $to, $target := $policy.egress.to }}
{{- if include "tenant.isWithoutTarget" $target }}
{{- include "tenant.refuse" (dict "v" $v "id" "extra-policy-target" "words" (merge (dict "peer" $to) $words)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* "true" where a target selects nothing: neither pods nor addresses. */ -}}
{{- define "tenant.isWithoutTarget" -}}
{{- if not (or (include "tenant.peer" .peer) .cidrs) }}true{{ end }}
{{- end }}
