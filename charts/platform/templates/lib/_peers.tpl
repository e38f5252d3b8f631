{{- /* Generated from charts/lib/peers.tpl by `make generate`. Do not edit. */ -}}
{{- /* Peers and ports of NetworkPolicies. */ -}}

{{- /* A peer without a namespace selects no pod: an empty selector would select all. Takes the peer of the values. */ -}}
{{- define "platform.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace | quote }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "platform.textMap" . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "platform.cidrs" -}}
{{- include "platform.arguments" (dict "template" "platform.cidrs" "given" . "names" (list "cidrs")) -}}
{{- range .cidrs }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- define "platform.ports" -}}
{{- include "platform.arguments" (dict "template" "platform.ports" "given" . "names" (list "ports")) -}}
{{- range .ports }}
- port: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}
