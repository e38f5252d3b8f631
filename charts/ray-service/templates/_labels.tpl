{{- /* Labels of objects. They contain the chart version, so they must not be in a pod template. */ -}}
{{- define "ray-service.labels" -}}
{{ include "ray-service.commonLabels" (dict "root" . "instance" (include "ray-service.name" .)) }}
{{- with .Values.tenant }}
rayhelm.dev/tenant: {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Labels of pods: constant, because a change of a Ray pod template starts a second cluster. Budgets, policies and
       monitors select by them, because KubeRay's own labels contain a cluster name that changes.
       Takes (list root role) or (list root "worker" group). */ -}}
{{- define "ray-service.podLabels" -}}
{{- $root := index . 0 }}
{{- include "ray-service.selector" . }}
{{- with $root.Values.tenant }}
rayhelm.dev/tenant: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "ray-service.selector" -}}
rayhelm.dev/service: {{ include "ray-service.name" (index . 0) | quote }}
rayhelm.dev/role: {{ index . 1 }}
{{- if eq (len .) 3 }}
rayhelm.dev/worker-group: {{ index . 2 | quote }}
{{- end }}
{{- end }}
