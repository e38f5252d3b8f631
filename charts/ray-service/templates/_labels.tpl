{{- /* Labels of objects. They contain the chart version, so they must not be in a pod template. */ -}}
{{- define "ray-service.labels" -}}
{{ include "ray-service.commonLabels" (dict "root" . "instance" (include "ray-service.name" .)) }}
{{- with .Values.tenant }}
rayhelm.dev/tenant: {{ . | quote }}
{{- end }}
{{- end }}

{{- /* Metadata of an object that is a part of the release: its name is the release's name and the part. */ -}}
{{- define "ray-service.partMetadata" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.partMetadata" "given" . "names" (list "root" "part")) -}}
{{- $name := printf "%s-%s" (include "ray-service.name" .root) .part -}}
{{ include "ray-service.metadata" (merge (dict "name" $name "namespace" .root.Release.Namespace) .) }}
{{- end }}

{{- /* Labels of pods: constant, because a change of a Ray pod template starts a second cluster. Budgets, policies and
       monitors select by them, because KubeRay's own labels contain a cluster name that changes. */ -}}
{{- define "ray-service.podLabels" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.podLabels" "given" . "names" (list "root" "role")) -}}
{{- $root := .root }}
{{- include "ray-service.selector" . }}
{{- with $root.Values.tenant }}
rayhelm.dev/tenant: {{ . | quote }}
{{- end }}
{{- end }}

{{- define "ray-service.selector" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.selector" "given" . "names" (list "root" "role")) -}}
rayhelm.dev/service: {{ include "ray-service.name" .root | quote }}
rayhelm.dev/role: {{ .role }}
{{- with get . "group" }}
rayhelm.dev/worker-group: {{ . | quote }}
{{- end }}
{{- end }}
