{{- /* Answers in OpenAI's shape; their words stand in files/errors.yaml. */ -}}

{{- define "gateway.errorBody" -}}
{{- dict "error" (dict "message" .message "type" (.type | default "invalid_request_error") "param" (.param | default nil) "code" .code) | toJson }}
{{- end }}

{{- /* Arguments of `http-request return` for one of our own answers. Takes (list all name), and perhaps a header more. */ -}}
{{- define "gateway.answer" -}}
{{- $error := get (index . 0).errors.own (index . 1) -}}
status {{ int $error.status }} content-type application/json
{{- with $error.header }} hdr {{ join " " . }}{{ end }}
{{- if gt (len .) 2 }} hdr {{ index . 2 }}{{ end }} string '{{ include "gateway.errorBody" $error }}'
{{- end }}

{{- /* What HAProxy says by itself, in the same shape. */ -}}
{{- define "gateway.ownErrors" -}}
{{- range $status, $error := .errors.process }}
http-error status {{ $status }} content-type application/json string '{{ include "gateway.errorBody" $error }}'
{{- end }}
{{- end }}
