{{- /* Names of the groups with GPUs whose workers Ray removes when a model or deployment has scaled to zero. */ -}}
{{- define "ray-service.freedGroups" -}}
{{- $shrinking := list }}
{{- range $name, $group := .workerGroups }}
{{- if and $.autoscaler.enabled .gpu.count (lt .minReplicas .maxReplicas) }}
{{- $shrinking = append $shrinking $name }}
{{- end }}
{{- end }}
{{- $freed := list }}
{{- range .serve.applications }}
{{- range .models }}
{{- if and (eq .accelerator.kind "gpu") (not .autoscaling.minReplicas) }}
{{- $freed = concat $freed (.workerGroups | default $shrinking) }}
{{- end }}
{{- end }}
{{- end }}
{{- range .serve.customApplications }}
{{- range .deployments }}
{{- if and .gpus (not .minReplicas) }}
{{- $freed = concat $freed (compact (list .workerGroup) | default $shrinking) }}
{{- end }}
{{- end }}
{{- end }}
{{- $found := list }}
{{- range $shrinking }}
{{- if has . $freed }}
{{- $found = append $found . }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}
