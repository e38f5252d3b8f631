{{- /* Egress rules of NetworkPolicies. Each takes networkPolicy. */ -}}

{{- define "platform.dnsEgress" -}}
- to:
    {{- printf "%s%s" (include "platform.peer" .dns.peer) (include "platform.cidrs" (dict "cidrs" .dns.cidrs)) | trim | nindent 4 }}
  ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end }}

{{- define "platform.apiServerEgress" -}}
- to:
    {{- include "platform.cidrs" (dict "cidrs" .apiServer.cidrs) | trim | nindent 4 }}
  ports:
    {{- include "platform.ports" (dict "ports" .apiServer.ports) | trim | nindent 4 }}
{{- end }}

{{- /* Empty if Prometheus has no address, because an empty list of peers allows all. */ -}}
{{- define "platform.prometheusEgress" -}}
{{- with .prometheusApi }}
{{- $to := printf "%s%s" (include "platform.peer" .peer) (include "platform.cidrs" (dict "cidrs" .cidrs)) | trim }}
{{- if $to }}
- to:
    {{- $to | nindent 4 }}
  ports:
    {{- include "platform.ports" (dict "ports" (list .port)) | trim | nindent 4 }}
{{- end }}
{{- end }}
{{- end }}
