{{- /* Peers of NetworkPolicies. A peer without a namespace matches no pod, never all pods. */ -}}

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

{{- /* Pods that may call the Serve port. An empty `from` would allow all pods, so there is no rule then. Takes (list
       root values). */ -}}
{{- define "ray-service.allowedClients" -}}
{{- $v := index . 1 }}
{{- range $v.networkPolicy.allowedGateways }}
{{- include "ray-service.peer" . }}
{{- end }}
{{- if $v.test.enabled }}
- podSelector:
    {{- include "ray-service.podsByRole" (list (index . 0) "test") | nindent 4 }}
{{- end }}
{{- end }}

{{- /* Pods of this release by role. The pod with which KubeRay cleans up Redis has the labels of a head, and is
       excluded. Takes (list root role...). */ -}}
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
  {{- if has "head" . }}
  - {key: ray.io/node-type, operator: NotIn, values: [redis-cleanup]}
  {{- end }}
{{- end }}
