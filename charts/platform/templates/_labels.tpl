{{- define "platform.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: rayhelm
{{- end }}

{{- /* Metadata of an object of the cluster, which no namespace holds. Takes (list root name). */ -}}
{{- define "platform.clusterWide" -}}
name: {{ index . 1 }}
labels:
  {{- include "platform.labels" (index . 0) | nindent 2 }}
{{- end }}

{{- /* Metadata of an object in a namespace. Takes (list root namespace name). */ -}}
{{- define "platform.metadata" -}}
name: {{ index . 2 }}
namespace: {{ index . 1 }}
labels:
  {{- include "platform.labels" (index . 0) | nindent 2 }}
{{- end }}
