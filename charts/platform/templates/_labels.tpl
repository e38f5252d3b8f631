{{- define "platform.labels" -}}
{{ include "platform.commonLabels" (dict "root" . "instance" .Release.Name) }}
{{- end }}
