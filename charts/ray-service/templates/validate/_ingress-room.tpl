{{- /* Each replica of an ingress reserves one CPU. Takes the values. */ -}}
{{- define "ray-service.validateIngressRoom" -}}
{{- $v := . }}
{{- range $name, $group := .workerGroups }}
{{- $need := 0.0 }}
{{- range $v.serve.applications }}
{{- if eq .ingress.workerGroup $name }}
{{- $need = addf $need .ingress.maxReplicas }}
{{- end }}
{{- end }}
{{- $cpus := include "ray-service.number" $group.resources.limits.cpu | float64 }}
{{- $have := mulf $cpus (include "ray-service.maxPods" (dict "v" $v "group" $group) | float64) }}
{{- if gt $need $have }}
{{- $field := ternary "maxReplicas" "minReplicas" (get $v.autoscaler "declared") }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-ingress" "words" (dict "group" $name "have" $have "need" $need "field" $field "replicas" (divf $need (mulf $cpus $group.numOfHosts) | ceil))) }}
{{- end }}
{{- end }}
{{- end }}
