{{- /* Whether a model has an operation whose body is forwarded as a stream. */ -}}
{{- define "gateway.hasUploads" -}}
{{- range .v.models }}
{{- range include "gateway.operationsOf" (dict "data" $ "model" .) | fromJson }}
{{- if eq .body "stream" }}true{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Uploads of up to `limits.bodyBytes`. HAProxy retries only what it holds completely when it connects. */ -}}
{{- define "gateway.holdUploads" }}
{{- if and .v.retries.emptyResponse (include "gateway.hasUploads" . | trim) }}
  acl is_held req.fhdr(content-length) -m int 1:{{ int .v.limits.bodyBytes }}
  http-request wait-for-body time {{ int .v.timeouts.bodySeconds }}s if is_stream is_held
  http-request del-header expect if is_stream is_held
{{- end }}
{{- end }}
