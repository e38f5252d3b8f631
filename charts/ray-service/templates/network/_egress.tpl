{{- /* Egress rules. They take networkPolicy, except the last. */ -}}

{{- define "ray-service.dnsEgress" -}}
{{- $to := printf "%s%s" (include "ray-service.peer" .dns.peer) (include "ray-service.cidrs" (dict "cidrs" .dns.cidrs)) }}
{{- if $to }}
- to:
    {{- $to | nindent 4 }}
  ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end }}
{{- end }}

{{- define "ray-service.redisEgress" -}}
- to:
    {{- include "ray-service.peer" .redis.peer | trim | nindent 4 }}
    {{- include "ray-service.cidrs" (dict "cidrs" .redis.cidrs) | trim | nindent 4 }}
  ports:
    {{- include "ray-service.ports" (dict "ports" (list .redis.port)) | trim | nindent 4 }}
{{- end }}

{{- define "ray-service.prometheusEgress" -}}
{{- with .prometheusApi }}
- to:
    {{- include "ray-service.peer" .peer | trim | nindent 4 }}
    {{- include "ray-service.cidrs" (dict "cidrs" .cidrs) | trim | nindent 4 }}
  ports:
    {{- include "ray-service.ports" (dict "ports" (list .port)) | trim | nindent 4 }}
{{- end }}
{{- end }}

{{- define "ray-service.tracingEgress" -}}
{{- with .tracing }}
- to:
    {{- include "ray-service.peer" .peer | trim | nindent 4 }}
    {{- include "ray-service.cidrs" (dict "cidrs" .cidrs) | trim | nindent 4 }}
  ports:
    {{- include "ray-service.ports" (dict "ports" (list .port)) | trim | nindent 4 }}
{{- end }}
{{- end }}

{{- /* Takes `hub` or `bucket` of networkPolicy. */ -}}
{{- define "ray-service.sourceEgress" -}}
{{- $peer := include "ray-service.peer" .peer }}
{{- if or $peer .cidrs }}
- to:
    {{- with $peer }}
    {{- . | trim | nindent 4 }}
    {{- end }}
    {{- range .cidrs }}
    - ipBlock:
        cidr: {{ . }}
        {{- with $.except }}
        except:
          {{- toYaml . | nindent 10 }}
        {{- end }}
    {{- end }}
  ports:
    {{- include "ray-service.ports" (dict "ports" .ports) | trim | nindent 4 }}
{{- end }}
{{- end }}

{{- /* Policy of the download pod, the only pod that may call the hub while `weights.offline` is on. */ -}}
{{- define "ray-service.downloadPolicy" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.downloadPolicy" "given" . "names" (list "root" "v")) -}}
{{- $policy := .v.networkPolicy -}}
podSelector:
  {{- include "ray-service.podsByRole" (dict "root" .root "roles" (list "download")) | nindent 2 }}
policyTypes: [Egress]
egress:
  {{- include "ray-service.dnsEgress" $policy | trim | nindent 2 }}
  {{- include "ray-service.sourceEgress" $policy.hub | trim | nindent 2 }}
  {{- include "ray-service.sourceEgress" $policy.bucket | trim | nindent 2 }}
{{- end }}
