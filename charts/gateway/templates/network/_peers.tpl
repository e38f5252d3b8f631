{{- /* Peers of the NetworkPolicy. A peer without a namespace is nobody, never everybody. */ -}}
{{- define "gateway.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "gateway.texts" . | trim | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "gateway.cidrs" -}}
{{- range . }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- /* Pods behind an endpoint: of a RayService the workers, for its head takes no traffic. Takes (list root endpoint). */ -}}
{{- define "gateway.endpointPeer" -}}
{{- $end := index . 1 }}
{{- if $end.service }}
{{- $workers := dict "rayhelm.dev/service" $end.service "rayhelm.dev/role" "worker" }}
{{- include "gateway.peer" (dict "namespace" ($end.namespace | default (index . 0).Release.Namespace) "podLabels" $workers) }}
{{- else }}
{{- include "gateway.peer" $end.peer }}
{{- include "gateway.cidrs" $end.cidrs }}
{{- end }}
{{- end }}

{{- /* A way to each endpoint, once. Takes (list root values). */ -}}
{{- define "gateway.upstreamEgress" -}}
{{- $root := index . 0 }}
{{- $seen := list }}
{{- range (index . 1).models }}
{{- range .versions }}
{{- range .endpoints }}
{{- $way := printf "%s%d" (include "gateway.endpointPeer" (list $root .)) (int .port) }}
{{- if not (has $way $seen) }}
{{- $seen = append $seen $way }}
- to:
    {{- include "gateway.endpointPeer" (list $root .) | trim | nindent 4 }}
  ports:
    - {port: {{ int .port }}, protocol: TCP}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
