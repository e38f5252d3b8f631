{{- define "platform.labels" -}}
{{ include "platform.commonLabels" (dict "root" . "instance" .Release.Name) }}
{{- end }}

{{- /* Metadata of an object of the cluster, which no namespace holds. */ -}}
{{- define "platform.clusterWide" -}}
{{- include "platform.arguments" (dict "template" "platform.clusterWide" "given" . "names" (list "root" "name")) -}}
name: {{ .name }}
labels:
  {{- include "platform.labels" .root | nindent 2 }}
{{- end }}

{{- /* Metadata of an object in a namespace. */ -}}
{{- define "platform.metadata" -}}
{{- include "platform.arguments" (dict "template" "platform.metadata" "given" . "names" (list "root" "namespace" "name")) -}}
name: {{ .name }}
namespace: {{ .namespace }}
labels:
  {{- include "platform.labels" .root | nindent 2 }}
{{- end }}
