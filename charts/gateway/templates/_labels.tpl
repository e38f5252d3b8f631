{{- define "gateway.labels" -}}
{{ include "gateway.commonLabels" (dict "root" . "instance" (include "gateway.name" .)) }}
{{- end }}

{{- /* Labels by which the Deployment, the Service, the budget, policies and monitors select the pods. The selector of a
       Deployment is immutable, so these labels never change. */ -}}
{{- define "gateway.selector" -}}
rayhelm.dev/gateway: {{ include "gateway.name" . }}
{{- end }}

{{- /* Metadata of an object that has the name of the release. */ -}}
{{- define "gateway.releaseMetadata" -}}
{{ include "gateway.metadata" (dict "root" . "name" (include "gateway.name" .) "namespace" .Release.Namespace) }}
{{- end }}
