{{- /* Pods that may call the Serve port. An empty `from` would allow all pods, so there is no rule then. */ -}}
{{- define "ray-service.allowedClients" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.allowedClients" "given" . "names" (list "root" "v")) -}}
{{- $v := .v }}
{{- range $v.networkPolicy.allowedGateways }}
{{- include "ray-service.peer" . }}
{{- end }}
{{- if $v.test.enabled }}
- podSelector:
    {{- include "ray-service.podsByRole" (dict "root" .root "roles" (list "test")) | nindent 4 }}
{{- end }}
{{- end }}

{{- /* Pods of this release by role. The pod with which KubeRay cleans up Redis has the labels of a head, and is
       excluded. */ -}}
{{- define "ray-service.podsByRole" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.podsByRole" "given" . "names" (list "root" "roles")) -}}
matchLabels:
  rayhelm.dev/service: {{ include "ray-service.name" .root | quote }}
matchExpressions:
  - key: rayhelm.dev/role
    operator: In
    values:
      {{- range .roles }}
      - {{ . }}
      {{- end }}
  {{- if has "head" .roles }}
  - {key: ray.io/node-type, operator: NotIn, values: [redis-cleanup]}
  {{- end }}
{{- end }}
