{{- /* Egress rules. They take networkPolicy, except the last. */ -}}

{{- define "ray-service.dnsEgress" -}}
{{- $to := printf "%s%s" (include "ray-service.peer" .dns.peer) (include "ray-service.cidrs" .dns.cidrs) }}
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
    {{- include "ray-service.cidrs" .redis.cidrs | trim | nindent 4 }}
  ports:
    {{- include "ray-service.ports" (list .redis.port) | trim | nindent 4 }}
{{- end }}

{{- define "ray-service.prometheusEgress" -}}
{{- with .prometheusApi }}
- to:
    {{- include "ray-service.peer" .peer | trim | nindent 4 }}
    {{- include "ray-service.cidrs" .cidrs | trim | nindent 4 }}
  ports:
    {{- include "ray-service.ports" (list .port) | trim | nindent 4 }}
{{- end }}
{{- end }}

{{- define "ray-service.hubEgress" -}}
{{- $peer := include "ray-service.peer" .hub.peer }}
{{- if or $peer .hub.cidrs }}
- to:
    {{- with $peer }}
    {{- . | trim | nindent 4 }}
    {{- end }}
    {{- range .hub.cidrs }}
    - ipBlock:
        cidr: {{ . }}
        {{- with $.hub.except }}
        except:
          {{- toYaml . | nindent 10 }}
        {{- end }}
    {{- end }}
  ports:
    {{- include "ray-service.ports" .hub.ports | trim | nindent 4 }}
{{- end }}
{{- end }}

{{- /* Policy of the download pod, the only pod that may call the hub while `weights.offline` is on. Takes (list root
       values). */ -}}
{{- define "ray-service.downloadPolicy" -}}
{{- $policy := (index . 1).networkPolicy -}}
podSelector:
  {{- include "ray-service.podsByRole" (list (index . 0) "download") | nindent 2 }}
policyTypes: [Egress]
egress:
  {{- include "ray-service.dnsEgress" $policy | trim | nindent 2 }}
  {{- include "ray-service.hubEgress" $policy | trim | nindent 2 }}
{{- end }}
