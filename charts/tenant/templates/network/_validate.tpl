{{- /* Takes `networkPolicy`. */ -}}
{{- define "tenant.validateNetwork" -}}
{{- if not (or .dns.peer.namespace .dns.cidrs) }}
{{- include "tenant.refuse" (list "dns-egress" dict) }}
{{- end }}
{{- range $name, $egress := .egress }}
{{- if include "tenant.isWithoutTarget" $egress }}
{{- include "tenant.refuse" (list "egress-target" (dict "name" $name)) }}
{{- end }}
{{- end }}
{{- range $name, $policy := .extraPolicies }}
{{- $words := dict "name" $name }}
{{- if not $policy.podLabels }}
{{- include "tenant.refuse" (list "extra-policy-selector" $words) }}
{{- end }}
{{- if and $policy.ingress.ports (not $policy.ingress.from) }}
{{- include "tenant.refuse" (list "extra-policy-peers" (merge (dict "side" "ingress" "key" "from" "peers" "{clients: {namespace: clients}}" "ports" $policy.ingress.ports) $words)) }}
{{- end }}
{{- if and $policy.egress.ports (not $policy.egress.to) }}
{{- include "tenant.refuse" (list "extra-policy-peers" (merge (dict "side" "egress" "key" "to" "peers" "{database: {cidrs: [10.0.0.1/32]}}" "ports" $policy.egress.ports) $words)) }}
{{- end }}
{{- if not (or $policy.ingress.from $policy.egress.to) }}
{{- include "tenant.refuse" (list "extra-policy-empty" $words) }}
{{- end }}
{{- if and $policy.egress.to (not $policy.egress.ports) }}
{{- include "tenant.refuse" (list "extra-policy-ports" $words) }}
{{- end }}
{{- range $from, $peer := $policy.ingress.from }}
{{- if not $peer.namespace }}
{{- include "tenant.refuse" (list "extra-policy-client" (merge (dict "peer" $from) $words)) }}
{{- end }}
{{- end }}
{{- range $to, $target := $policy.egress.to }}
{{- if include "tenant.isWithoutTarget" $target }}
{{- include "tenant.refuse" (list "extra-policy-target" (merge (dict "peer" $to) $words)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* "true" where a target selects nothing: pods without a namespace, and no addresses. */ -}}
{{- define "tenant.isWithoutTarget" -}}
{{- if not (or .peer.namespace (and .cidrs (not .peer.podLabels))) }}true{{ end }}
{{- end }}
