{{- /* Error responses in OpenAI's shape; their text is in files/errors.yaml. */ -}}

{{- define "gateway.errorBody" -}}
{{- dict "error" (dict "message" .message "type" (.type | default "invalid_request_error") "param" (.param | default nil) "code" .code) | toJson }}
{{- end }}

{{- /* Arguments of `http-request return` for an error of the gateway. `header` is an optional
       response header. `x-rayhelm-reason` is for the counters of gateway.countResponses. */ -}}
{{- define "gateway.error" -}}
{{- include "gateway.arguments" (dict "template" "gateway.error" "given" . "names" (list "errors" "id")) -}}
{{- $error := get .errors.gateway .id -}}
status {{ int $error.status }} content-type application/json hdr x-rayhelm-reason {{ $error.code }}
{{- with $error.header }} hdr {{ join " " . }}{{ end }}
{{- with get . "header" }} hdr {{ . }}{{ end }} {{ contains "%[" $error.message | ternary "lf-string" "string" }} '{{ include "gateway.errorBody" $error }}'
{{- end }}

{{- /* Errors that HAProxy generates by itself, in the same shape. */ -}}
{{- define "gateway.haproxyErrors" -}}
{{- range $status, $error := .errors.haproxy }}
http-error status {{ $status }} content-type application/json string '{{ include "gateway.errorBody" $error }}'
{{- end }}
{{- end }}
