{{- /* Generated from charts/lib/peers.tpl by `make generate`. Do not edit. */ -}}
{{- /* Peers and ports of NetworkPolicies. */ -}}

{{- /* A peer with labels alone is in the namespace of its policy, as in Kubernetes. One whose namespace is "", or that has
       neither, selects no pod: an empty selector would select all. Takes the peer of the values. */ -}}
{{- define "gateway.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace | quote }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "gateway.textMap" . | nindent 6 }}
  {{- end }}
{{- else if and (kindIs "invalid" .namespace) .podLabels }}
- podSelector:
    matchLabels:
      {{- include "gateway.textMap" .podLabels | nindent 6 }}
{{- end }}
{{- end }}

{{- define "gateway.cidrs" -}}
{{- include "gateway.arguments" (dict "template" "gateway.cidrs" "given" . "names" (list "cidrs")) -}}
{{- range .cidrs }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- define "gateway.ports" -}}
{{- include "gateway.arguments" (dict "template" "gateway.ports" "given" . "names" (list "ports")) -}}
{{- range .ports }}
- port: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}
