{{- /* Peers of the NetworkPolicy. A peer without a namespace selects no pods: an empty selector would select all. */ -}}
{{- define "gateway.peer" -}}
{{- if .namespace }}
- namespaceSelector:
    matchLabels:
      kubernetes.io/metadata.name: {{ .namespace }}
  {{- with .podLabels }}
  podSelector:
    matchLabels:
      {{- include "gateway.textMap" . | nindent 6 }}
  {{- end }}
{{- end }}
{{- end }}

{{- define "gateway.cidrs" -}}
{{- range . }}
- ipBlock:
    cidr: {{ . }}
{{- end }}
{{- end }}

{{- /* Pods behind an endpoint: the workers of a RayService, because its head serves no requests. Takes (list root endpoint). */ -}}
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

{{- /* Egress to each endpoint, without duplicates. Takes (list root values). */ -}}
{{- define "gateway.upstreamEgress" -}}
{{- $root := index . 0 }}
{{- $seen := list }}
{{- range (index . 1).models }}
{{- range .versions }}
{{- range .endpoints }}
{{- $flow := printf "%s%d" (include "gateway.endpointPeer" (list $root .)) (int .port) }}
{{- if not (has $flow $seen) }}
{{- $seen = append $seen $flow }}
- to:
    {{- include "gateway.endpointPeer" (list $root .) | trim | nindent 4 }}
  ports:
    - {port: {{ int .port }}, protocol: TCP}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
