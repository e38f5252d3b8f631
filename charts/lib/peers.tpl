{{- /* Peers and ports of NetworkPolicies. */ -}}

{{- /* A peer without a namespace selects no pod: an empty selector would select all. Takes the peer of the values. */ -}}
{{- define "lib.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace | quote }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "lib.textMap" . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "lib.cidrs" -}}
{{- include "lib.arguments" (dict "template" "lib.cidrs" "given" . "names" (list "cidrs")) -}}
{{- range .cidrs }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- define "lib.ports" -}}
{{- include "lib.arguments" (dict "template" "lib.ports" "given" . "names" (list "ports")) -}}
{{- range .ports }}
- port: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}
