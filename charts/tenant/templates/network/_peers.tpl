{{- /* Pods of this namespace by their labels; none for all of them. */ -}}
{{- define "tenant.selected" -}}
matchLabels:
  {{- include "tenant.textMap" . | default "{}" | nindent 2 }}
{{- end }}
