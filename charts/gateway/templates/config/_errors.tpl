{{- /* Error responses in OpenAI's shape; their text is in files/errors.yaml. With the outer `type` they are errors of the Messages
       API too: the body of a request, and often its path, are not known yet where it is refused. */ -}}

{{- define "gateway.errorBody" -}}
{{- $type := .type | default "invalid_request_error" -}}
{{- $error := dict "message" .message "type" $type "param" (.param | default nil) "code" .code -}}
{{- dict "type" "error" "error" $error | toJson }}
{{- end }}

{{- /* Arguments of `http-request return` for each error of the gateway, by its id, as JSON. Another response header can follow.
       `x-rayhelm-reason` is for the counters. */ -}}
{{- define "gateway.answers" -}}
{{- $answers := dict }}
{{- range $id, $error := merge (dict) .errors.gateway .errors.remote }}
{{- $header := $error.header | empty | ternary "" (printf " hdr %s" (join " " $error.header)) }}
{{- $start := printf "status %d content-type application/json hdr x-rayhelm-reason %s%s" (int $error.status) $error.code $header }}
{{- $kind := contains "%[" $error.message | ternary "lf-string" "string" }}
{{- $_ := set $answers $id (printf "%s %s '%s'" $start $kind (include "gateway.errorBody" $error)) }}
{{- end }}
{{- $answers | toJson }}
{{- end }}

{{- /* Errors that HAProxy generates by itself, in the same shape. */ -}}
{{- define "gateway.haproxyErrors" -}}
{{- range $status, $error := .errors.haproxy }}
  http-error status {{ $status }} content-type application/json string '{{ include "gateway.errorBody" $error }}'
{{- end }}
{{- end }}
