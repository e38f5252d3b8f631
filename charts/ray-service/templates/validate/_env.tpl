{{- /* Variables that no value may set, and why. */ -}}
{{- define "ray-service.reservedEnv" -}}
{{- dict
      "RAY_REDIS_ADDRESS" "gcsFaultTolerance sets it"
      "REDIS_PASSWORD" "gcsFaultTolerance.passwordSecret sets it"
      "REDIS_USERNAME" "KubeRay refuses it after the API server accepted it"
      "RAY_enable_autoscaler_v2" "autoscaler sets it"
      "RAY_AUTH_MODE" "auth sets it" "RAY_AUTH_TOKEN" "auth.secretName names the Secret"
      "RAY_AUTH_TOKEN_PATH" "auth.secretName names the Secret"
      "HF_TOKEN" "weights.download.tokenSecret names the Secret"
      "HUGGING_FACE_HUB_TOKEN" "weights.download.tokenSecret names the Secret"
      "HF_HUB_OFFLINE" "weights.offline sets it"
      "HF_ENDPOINT" "weights.download.endpoint sets it"
      "RAY_SERVE_LLM_ROUTER_HTTP_TIMEOUT" "serve.requestTimeoutSeconds sets it"
      "RAY_SERVE_ENABLE_HA_PROXY" "serve.dataPath sets it" "RAY_SERVE_LLM_ENABLE_DIRECT_STREAMING" "serve.dataPath sets it"
      "RAY_SERVE_INGRESS_REQUEST_ROUTER_FORWARD_BODY" "serve.dataPath sets it"
      "RAY_SERVE_HAPROXY_INGRESS_REQUEST_ROUTER_TIMEOUT_S" "serve.requestTimeoutSeconds sets it"
      "RAYLLM_ENABLE_REQUEST_PROMPT_LOGS" "it logs prompts"
      "VLLM_DEBUG_LOG_API_SERVER_RESPONSE" "it logs responses"
      "VLLM_API_KEY" "Ray Serve LLM ignores it; the gateway checks keys"
      "VLLM_SERVER_DEV_MODE" "it opens endpoints that change the server"
      "VLLM_RAY_PER_WORKER_GPUS" "gpuFraction sets it"
      "VLLM_HOST_IP" "its value differs by pod, and vLLM detects it"
      "RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH" "tracing sets it" "RAY_SERVE_TRACING_SAMPLING_RATIO" "tracing sets it"
      "RAYHELM_TRACING_RATIO" "tracing sets it" "OTEL_TRACES_SAMPLER" "tracing sets it"
      "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" "tracing sets it" "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL" "tracing sets it"
      "NVIDIA_VISIBLE_DEVICES" "the device plugin sets it" | toJson }}
{{- end }}

{{- /* Refuse variables that another key sets, that have no effect, or that contain a secret. */ -}}
{{- define "ray-service.validateEnv" -}}
{{- $v := . }}
{{- $reasons := include "ray-service.reservedEnv" . | fromJson }}
{{- if .logs.stdout.enabled }}
{{- $_ := set $reasons "RAY_SERVE_LOG_TO_STDERR" "logs.stdout sets it; with another value Serve would log text of clients" }}
{{- end }}
{{- $envs := list (dict "path" (list "head") "env" .head.env) }}
{{- range $name, $group := .workerGroups }}
{{- $envs = append $envs (dict "path" (list "workerGroups" $name) "env" $group.env) }}
{{- end }}
{{- range $name, $app := .serve.applications }}
{{- range $id, $model := $app.models }}
{{- $envs = append $envs (dict "path" (list "serve" "applications" $name "models" $id) "env" $model.env) }}
{{- end }}
{{- end }}
{{- range $name, $app := .serve.customApplications }}
{{- $envs = append $envs (dict "path" (list "serve" "customApplications" $name) "env" $app.env) }}
{{- end }}
{{- range $envs }}
{{- $path := .path }}
{{- $env := .env }}
{{- $bad := list }}
{{- range $variable, $value := $env }}
{{- $secret := include "ray-service.isSecret" (dict "name" $variable "value" $value) | empty | ternary "" "it is the name of a secret, which everyone who reads the values reads: extraEnv with valueFrom.secretKeyRef names a Secret" }}
{{- with get $reasons $variable | default $secret }}
{{- $bad = append $bad (dict "name" $variable "why" .) }}
{{- end }}
{{- end }}
{{- include "ray-service.refuseEntries" (dict "v" $v "id" "reserved-env" "bad" $bad "given" $env "words" (dict "path" $path)) }}
{{- end }}
{{- end }}
