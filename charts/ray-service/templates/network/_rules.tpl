{{- /* Peers of NetworkPolicies. A peer without a namespace is nobody, never everybody. */ -}}

{{- define "ray-service.policyMetadata" -}}
{{- $root := index . 0 -}}
name: {{ include "ray-service.name" $root }}-{{ index . 1 }}
namespace: {{ $root.Release.Namespace | quote }}
labels:
  {{- include "ray-service.labels" $root | nindent 2 }}
{{- end }}

{{- define "ray-service.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace | quote }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "ray-service.textMap" . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.cidrs" -}}
{{- range . }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- define "ray-service.ports" -}}
{{- range . }}
- port: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}

{{- /* Pods of this release by role. Takes (list root role...). */ -}}
{{- define "ray-service.podsByRole" -}}
matchLabels:
  rayhelm.dev/service: {{ include "ray-service.name" (index . 0) | quote }}
matchExpressions:
  - key: rayhelm.dev/role
    operator: In
    values:
      {{- range rest . }}
      - {{ . }}
      {{- end }}
{{- end }}

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

{{- define "ray-service.hubEgress" -}}
{{- if .hub.cidrs }}
- to:
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

{{- /* The one pod that reaches the hub when servers are offline. Takes (list root values). */ -}}
{{- define "ray-service.downloadPolicy" -}}
{{- $policy := (index . 1).networkPolicy -}}
podSelector:
  {{- include "ray-service.podsByRole" (list (index . 0) "download") | nindent 2 }}
policyTypes: [Egress]
egress:
  {{- include "ray-service.dnsEgress" $policy | trim | nindent 2 }}
  {{- include "ray-service.hubEgress" $policy | trim | nindent 2 }}
{{- end }}
