{{- /* Rules that answer with the OpenAPI document and its page: without a key, or after the route is known. */ -}}

{{- define "gateway.publicOpenapi" }}
{{- if eq .v.openapi.access "Public" }}
{{- include "gateway.openapiRules" "" }}
{{- end }}
{{- end }}

{{- define "gateway.openapiWithKey" }}
{{- if eq .v.openapi.access "Key" }}
{{- include "gateway.openapiRules" "!has_route " }}
{{- end }}
{{- end }}

{{- /* Takes a condition with a space behind it, or nothing. */ -}}
{{- define "gateway.openapiRules" }}
{{- $document := "status 200 content-type application/json hdr cache-control no-cache file openapi.json" }}
{{- $headers := "hdr cache-control no-cache hdr content-security-policy \"default-src 'none'\"" }}
{{- $page := printf "status 200 content-type \"text/html; charset=utf-8\" %s file docs.html" $headers }}
  http-request return {{ $document }} if {{ . }}{ path /openapi.json } { method GET }
  http-request return {{ $page }} if {{ . }}{ path /docs } { method GET }
{{- end }}
