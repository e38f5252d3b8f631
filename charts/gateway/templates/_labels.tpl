{{- define "gateway.labels" -}}
{{ include "gateway.commonLabels" (dict "root" . "instance" (include "gateway.name" .)) }}
{{- end }}

{{- /* Labels by which the Deployment, the Service, the budget, policies and monitors select the pods. The selector of a
       Deployment is immutable, so these labels never change. */ -}}
{{- define "gateway.selector" -}}
rayhelm.dev/gateway: {{ include "gateway.name" . }}
{{- end }}

{{- define "gateway.metadata" -}}
name: {{ include "gateway.name" . }}
namespace: {{ .Release.Namespace }}
labels:
  {{- include "gateway.labels" . | nindent 2 }}
{{- end }}
