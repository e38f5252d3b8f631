{{- define "ray-service.validateImages" -}}
{{- $v := . }}
{{- $images := dict "image" (include "ray-service.image" .image) }}
{{- range $name, $group := .workerGroups }}
{{- $_ := set $images (printf "workerGroups.%s.image" $name) (include "ray-service.groupImage" (list $v.image $group.image)) }}
{{- end }}
{{- with .weights.download.image }}
{{- $_ := set $images "weights.download.image" . }}
{{- end }}
{{- with .test.image }}
{{- $_ := set $images "test.image" . }}
{{- end }}
{{- range $path, $image := $images }}
{{- if not (regexMatch "(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9._-]*)$" $image) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "image-latest" "words" (dict "path" $path "image" $image)) }}
{{- else if hasSuffix ":latest" $image }}
{{- include "ray-service.refuse" (dict "v" $v "id" "image-latest" "words" (dict "path" $path "image" $image)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Variables that a value of their own sets, that do nothing, or that hold a secret. */ -}}
{{- define "ray-service.validateEnv" -}}
{{- $v := . }}
{{- $reasons := dict
      "RAY_REDIS_ADDRESS" "gcsFaultTolerance sets it"
      "REDIS_PASSWORD" "gcsFaultTolerance.passwordSecret sets it"
      "REDIS_USERNAME" "KubeRay refuses it after it was accepted"
      "RAY_enable_autoscaler_v2" "autoscaler sets it"
      "RAY_AUTH_MODE" "auth sets it" "RAY_AUTH_TOKEN" "auth.secretName names the Secret"
      "RAY_AUTH_TOKEN_PATH" "auth.secretName names the Secret"
      "HF_TOKEN" "weights.download.tokenSecret names the Secret"
      "HUGGING_FACE_HUB_TOKEN" "weights.download.tokenSecret names the Secret"
      "HF_HUB_OFFLINE" "weights.offline sets it"
      "HF_ENDPOINT" "weights.download.endpoint sets it"
      "RAY_SERVE_LLM_ROUTER_HTTP_TIMEOUT" "serve.requestTimeoutSeconds sets it"
      "VLLM_API_KEY" "Ray Serve LLM ignores it: keys belong at the gateway"
      "VLLM_SERVER_DEV_MODE" "it opens endpoints that change the server"
      "VLLM_RAY_PER_WORKER_GPUS" "gpuFraction sets it"
      "VLLM_HOST_IP" "it differs by pod, and vLLM finds it"
      "NVIDIA_VISIBLE_DEVICES" "the device plugin sets it" }}
{{- $envs := dict "head" .head.env }}
{{- range $name, $group := .workerGroups }}
{{- $_ := set $envs (printf "workerGroups.%s" $name) $group.env }}
{{- end }}
{{- range $name, $app := .serve.applications }}
{{- range $id, $model := $app.models }}
{{- $_ := set $envs (printf "serve.applications.%s.models.%s" $name $id) $model.env }}
{{- end }}
{{- end }}
{{- range $name, $app := .serve.customApplications }}
{{- $_ := set $envs (printf "serve.customApplications.%s" $name) $app.env }}
{{- end }}
{{- range $path, $env := $envs }}
{{- range $variable, $_ := $env }}
{{- with get $reasons $variable }}
{{- include "ray-service.refuse" (dict "v" $v "id" "reserved-env" "words" (dict "path" $path "variable" $variable "why" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
