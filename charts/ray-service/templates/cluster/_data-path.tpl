{{- /* Variables of Ray that select the way of a request. All pods need them: the controller on the head writes the routes, and each
       node starts its HAProxy. They take the values. */ -}}
{{- define "ray-service.dataPathEnv" -}}
{{- $env := dict }}
{{- if ne .serve.dataPath "Python" }}
{{- $_ := set $env "RAY_SERVE_ENABLE_HA_PROXY" "1" }}
{{- end }}
{{- if eq .serve.dataPath "Direct" }}
{{- $_ := set $env "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING" "1" }}
{{- $timeout := .serve.requestTimeoutSeconds | ceil | int | toString }}
{{- $neverStarts := false }}
{{- $haveRouters := include "ray-service.haveRouters" . }}
{{- range .serve.applications }}
{{- range .models }}
{{- $neverStarts = or $neverStarts (and (eq (int .autoscaling.minReplicas) 0) (or (not $haveRouters) (hasKey . "prefill"))) }}
{{- if eq .router.kind "PrefixAffinity" }}
{{- /* The router of a model reads the prompt. HAProxy buffers the request for it. */}}
{{- $_ := set $env "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY" "1" }}
{{- end }}
{{- end }}
{{- end }}
{{- /* HAProxy asks the router of a model for a replica, and Ray has it wait 5 s. A replica that is replaced takes longer. Ray's own
       router starts none, so a request that meets the stop of the last replica of a model would wait in vain. */}}
{{- if not $neverStarts }}
{{- $_ := set $env "RAY_SERVE_HAPROXY_INGRESS_REQUEST_ROUTER_TIMEOUT_S" $timeout }}
{{- end }}
{{- end }}
{{- $env | toJson }}
{{- end }}
