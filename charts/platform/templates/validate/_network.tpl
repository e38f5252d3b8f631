{{- define "platform.validateNetwork" -}}
{{- $v := . }}
{{- $policy := .networkPolicy }}
{{- if not $policy.enabled }}
{{- if not $policy.reason }}
{{- include "platform.refuse" (dict "v" $v "id" "network-policy-reason" "words" dict) }}
{{- end }}
{{- else }}
{{- if not (or $policy.dns.peer.namespace $policy.dns.cidrs) }}
{{- include "platform.refuse" (dict "v" $v "id" "dns-egress" "words" dict) }}
{{- end }}
{{- $clients := dict "doctor" .doctor.enabled "probe" .probe.enabled "metrics.adapter" (eq .metrics.adapter.kind "Managed") }}
{{- range $name, $enabled := $clients }}
{{- if and $enabled (not $policy.apiServer.cidrs) }}
{{- include "platform.refuse" (dict "v" $v "id" "api-server-cidrs" "words" (dict "what" $name)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
