{{- /* Uploads of up to `limits.bodyBytes`. HAProxy retries only what it holds completely when it connects. */ -}}
{{- define "gateway.frontendUpload" -}}
{{- if .retries.emptyResponse -}}
acl is_held req.fhdr(content-length) -m int 1:{{ int .limits.bodyBytes }}
http-request wait-for-body time {{ int .timeouts.bodySeconds }}s if is_stream is_held
http-request del-header expect if is_stream is_held
{{- end }}
{{- end }}
