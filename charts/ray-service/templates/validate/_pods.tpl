{{- define "ray-service.validateImages" -}}
{{- $v := . }}
{{- $images := list (list (list "image") (include "ray-service.image" .image)) }}
{{- range $name, $group := .workerGroups }}
{{- $images = append $images (list (list "workerGroups" $name "image") (include "ray-service.groupImage" (list $v.image $group.image))) }}
{{- end }}
{{- with .weights.download.image }}
{{- $images = append $images (list (list "weights" "download" "image") .) }}
{{- end }}
{{- with .test.image }}
{{- $images = append $images (list (list "test" "image") .) }}
{{- end }}
{{- range $images }}
{{- $path := first . }}
{{- $image := last . }}
{{- $named := regexMatch "(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9._-]*)$" $image }}
{{- if or (not $named) (hasSuffix ":latest" $image) }}
{{- $fix := has (first $path) (list "weights" "test") | ternary "registry.example/tools:1.2.3" "{tag: 2.60.0-py312-cu130}" }}
{{- include "ray-service.refuse" (dict "v" $v "id" "image-latest" "words" (dict "path" $path "image" $image "fix" $fix)) }}
{{- end }}
{{- end }}
{{- end }}

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
      "VLLM_API_KEY" "Ray Serve LLM ignores it; the gateway checks keys"
      "VLLM_SERVER_DEV_MODE" "it opens endpoints that change the server"
      "VLLM_RAY_PER_WORKER_GPUS" "gpuFraction sets it"
      "VLLM_HOST_IP" "its value differs by pod, and vLLM detects it"
      "NVIDIA_VISIBLE_DEVICES" "the device plugin sets it" | toJson }}
{{- end }}

{{- /* Refuse variables that another key sets, that have no effect, or that contain a secret. */ -}}
{{- define "ray-service.validateEnv" -}}
{{- $v := . }}
{{- $reasons := include "ray-service.reservedEnv" . | fromJson }}
{{- $envs := list (list (list "head") .head.env) }}
{{- range $name, $group := .workerGroups }}
{{- $envs = append $envs (list (list "workerGroups" $name) $group.env) }}
{{- end }}
{{- range $name, $app := .serve.applications }}
{{- range $id, $model := $app.models }}
{{- $envs = append $envs (list (list "serve" "applications" $name "models" $id) $model.env) }}
{{- end }}
{{- end }}
{{- range $name, $app := .serve.customApplications }}
{{- $envs = append $envs (list (list "serve" "customApplications" $name) $app.env) }}
{{- end }}
{{- range $envs }}
{{- $path := first . }}
{{- $env := last . }}
{{- range $variable, $_ := $env }}
{{- with get $reasons $variable }}
{{- include "ray-service.refuse" (dict "v" $v "id" "reserved-env" "words" (dict "path" $path "variable" $variable "why" . "others" (omit $env $variable))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The settings that head, worker groups and download Job share with the pods of other charts. */ -}}
{{- define "ray-service.validatePods" -}}
{{- $v := . }}
{{- $reserved := include "ray-service.reservedEnv" . | fromJson }}
{{- $own := dict "volumes" (list "shm" "tmp" "cache" "vllm-config" "weights" "ray-logs" "shared-mem") "mounts" (list "/dev" "/proc" "/sys" "/tmp" "/cache" "/etc/vllm" "/home/ray/anaconda3" "/var/run/secrets" $v.weights.mountPath) }}
{{- $pods := list (dict "path" "head" "pod" .head "set" (include "ray-service.env" (list $v .head.env (include "ray-service.imageEnv" (list .image dict) | fromJson)))) }}
{{- range $name, $group := .workerGroups }}
{{- $pods = append $pods (dict "path" (printf "workerGroups.%s" $name) "pod" $group "set" (include "ray-service.env" (list $v $group.env (include "ray-service.groupEnv" (list $v $group) | fromJson)))) }}
{{- end }}
{{- $pods = append $pods (dict "path" "weights.download" "pod" .weights.download "set" (include "ray-service.envList" (include "ray-service.downloadEnv" . | fromJson))) }}
{{- range $pods }}
{{- $env := dict }}
{{- if .pod.extraEnv }}
{{- $env = deepCopy $reserved }}
{{- range .set | fromYamlArray }}
{{- $_ := set $env .name "the chart or `env` sets it" }}
{{- end }}
{{- end }}
{{- include "ray-service.validatePod" (merge (dict "v" $v "path" .path "pod" .pod "env" $env) $own) }}
{{- end }}
{{- include "ray-service.validateTolerations" (list $v "weights.download" .weights.download.tolerations) }}
{{- end }}
