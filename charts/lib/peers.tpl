{{- /* Peers and ports of NetworkPolicies. */ -}}

{{- /* A peer with labels alone is in the namespace of its policy, as in Kubernetes. One whose namespace is "", or that has
       neither, selects no pod: an empty selector would select all. Takes the peer of the values. */ -}}
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
{{- else if and (kindIs "invalid" .namespace) .podLabels }}
- podSelector:
    matchLabels:
      {{- include "lib.textMap" .podLabels | nindent 6 }}
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
