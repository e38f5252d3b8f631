{{- /* Peers of NetworkPolicies. A peer without a namespace matches no pod, never every pod. */ -}}
{{- define "tenant.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "tenant.textMap" . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "tenant.cidrs" -}}
{{- range . }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- define "tenant.ports" -}}
{{- range . }}
- port: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}

{{- /* Pods of this namespace by their labels; none for all of them. */ -}}
{{- define "tenant.selected" -}}
matchLabels:
  {{- include "tenant.textMap" . | default "{}" | nindent 2 }}
{{- end }}
