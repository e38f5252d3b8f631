{{- /* Generated from charts/lib/peers.tpl by `make generate`. Do not edit. */ -}}
{{- /* Peers and ports of NetworkPolicies. */ -}}

{{- /* A peer without a namespace selects no pod: an empty selector would select all. Takes the peer of the values. */ -}}
{{- define "argocd.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace | quote }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "argocd.textMap" . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "argocd.cidrs" -}}
{{- include "argocd.arguments" (dict "template" "argocd.cidrs" "given" . "names" (list "cidrs")) -}}
{{- range .cidrs }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- define "argocd.ports" -}}
{{- include "argocd.arguments" (dict "template" "argocd.ports" "given" . "names" (list "ports")) -}}
{{- range .ports }}
- port: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}
