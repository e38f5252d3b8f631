{{- /* Generated from charts/lib/peers.tpl by `make generate`. Do not edit. */ -}}
{{- /* Peers and ports of NetworkPolicies. */ -}}

{{- /* A peer with labels alone is in the namespace of its policy, as in Kubernetes. One whose namespace is "", or that has
       neither, selects no pod: an empty selector would select all. Takes the peer of the values. */ -}}
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
{{- else if and (kindIs "invalid" .namespace) .podLabels }}
- podSelector:
    matchLabels:
      {{- include "ray-service.textMap" .podLabels | nindent 6 }}
{{- end }}
{{- end }}

{{- define "ray-service.cidrs" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.cidrs" "given" . "names" (list "cidrs")) -}}
{{- range .cidrs }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- define "ray-service.ports" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.ports" "given" . "names" (list "ports")) -}}
{{- range .ports }}
- port: {{ int . }}
  protocol: TCP
{{- end }}
{{- end }}
