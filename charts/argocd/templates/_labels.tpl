{{- define "argocd.labels" -}}
{{ include "argocd.commonLabels" (dict "root" . "instance" .Release.Name) }}
{{- end }}
