{{- define "platform.labels" -}}
{{ include "platform.commonLabels" (dict "root" . "instance" .Release.Name) }}
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
