{{- /* Requirements of traces: endpoint, image, Ray version, egress. */ -}}
{{- define "ray-service.validateTracing" -}}
{{- $v := . }}
{{- if .tracing.enabled }}
{{- if not .tracing.endpoint }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tracing-endpoint" "words" dict) }}
{{- end }}
{{- if not .image.includesRayhelm }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tracing-image" "words" (dict "image" (list "image"))) }}
{{- end }}
{{- range $name, $group := .workerGroups }}
{{- if not (include "ray-service.hasRayhelm" (dict "image" $v.image "override" $group.image)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tracing-image" "words" (dict "image" (list "workerGroups" $name "image"))) }}
{{- end }}
{{- end }}
{{- if semverCompare "<2.60.0" .ray.version }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tracing-ray" "words" (dict "ray" .ray.version)) }}
{{- end }}
{{- $egress := .networkPolicy.tracing }}
{{- if and .networkPolicy.enabled (not (or (include "ray-service.peer" $egress.peer) $egress.cidrs)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "tracing-egress" "words" (dict "endpoint" .tracing.endpoint)) }}
{{- end }}
{{- end }}
{{- end }}
