{{- define "gateway.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ include "gateway.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: rayhelm
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
