{{- /* Pods behind an endpoint: the workers of a RayService, because its head serves no requests. */ -}}
{{- define "gateway.endpointPeer" -}}
{{- include "gateway.arguments" (dict "template" "gateway.endpointPeer" "given" . "names" (list "root" "endpoint")) -}}
{{- $end := .endpoint }}
{{- if $end.service }}
{{- $workers := dict "rayhelm.dev/service" $end.service "rayhelm.dev/role" "worker" }}
{{- include "gateway.peer" (dict "namespace" ($end.namespace | default .root.Release.Namespace) "podLabels" $workers) }}
{{- else }}
{{- include "gateway.peer" $end.peer }}
{{- include "gateway.cidrs" (dict "cidrs" $end.cidrs) }}
{{- end }}
{{- end }}

{{- /* Egress to each endpoint, without duplicates. */ -}}
{{- define "gateway.upstreamEgress" -}}
{{- include "gateway.arguments" (dict "template" "gateway.upstreamEgress" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $seen := list }}
{{- range .v.models }}
{{- range .versions }}
{{- range .endpoints }}
{{- $flow := printf "%s%d" (include "gateway.endpointPeer" (dict "root" $root "endpoint" .)) (int .port) }}
{{- if not (has $flow $seen) }}
{{- $seen = append $seen $flow }}
- to:
    {{- include "gateway.endpointPeer" (dict "root" $root "endpoint" .) | trim | nindent 4 }}
  ports:
    - {port: {{ int .port }}, protocol: TCP}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range .v.remoteGateways }}
{{- if .models }}
- to:
    {{- include "gateway.cidrs" (dict "cidrs" .cidrs) | trim | nindent 4 }}
  ports:
    - {port: {{ int .port }}, protocol: TCP}
{{- end }}
{{- end }}
{{- end }}
