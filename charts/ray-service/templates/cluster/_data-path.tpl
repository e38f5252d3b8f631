{{- /* Variables of Ray that select the way of a request. All pods need them: the controller on the head writes the routes, and each
       node starts its HAProxy. They take the values. */ -}}
{{- define "ray-service.dataPathEnv" -}}
{{- $env := dict }}
{{- if ne .serve.dataPath "Python" }}
{{- $_ := set $env "RAY_SERVE_ENABLE_HA_PROXY" "1" }}
{{- end }}
{{- if eq .serve.dataPath "Direct" }}
{{- $_ := set $env "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING" "1" }}
{{- range .serve.applications }}
{{- range .models }}
{{- if eq .router.kind "PrefixAffinity" }}
{{- /* The router of a model reads the prompt. HAProxy buffers the request for it. */}}
{{- $_ := set $env "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY" "1" }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $env | toJson }}
{{- end }}
