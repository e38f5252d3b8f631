{{- /* The backend that repeats failed connections only. */ -}}
{{- define "gateway.connectRetries" -}}
5
{{- end }}

{{- /* Without a colon: names with one are versions, in metrics too. */ -}}
{{- define "gateway.againName" -}}
{{- include "gateway.arguments" (dict "template" "gateway.againName" "given" . "names" (list "model" "version")) -}}
{{ include "gateway.backend" . | replace ":" "." }}.again
{{- end }}
