{{- /* Error responses in OpenAI's shape; their text is in files/errors.yaml. */ -}}

{{- define "gateway.errorBody" -}}
{{- dict "error" (dict "message" .message "type" (.type | default "invalid_request_error") "param" (.param | default nil) "code" .code) | toJson }}
{{- end }}

{{- /* Arguments of `http-request return` for an error of the gateway. Takes (list data name), and optionally one more
       header. */ -}}
{{- define "gateway.error" -}}
{{- $error := get (index . 0).errors.gateway (index . 1) -}}
status {{ int $error.status }} content-type application/json
{{- with $error.header }} hdr {{ join " " . }}{{ end }}
{{- if gt (len .) 2 }} hdr {{ index . 2 }}{{ end }} string '{{ include "gateway.errorBody" $error }}'
{{- end }}

{{- /* Errors that HAProxy generates by itself, in the same shape. */ -}}
{{- define "gateway.haproxyErrors" -}}
{{- range $status, $error := .errors.haproxy }}
http-error status {{ $status }} content-type application/json string '{{ include "gateway.errorBody" $error }}'
{{- end }}
{{- end }}
