{{- /* The root file system is read-only, so each cache gets a path. USER is set because torch looks up the user
       name, which other images may not have in passwd. */ -}}
{{- define "ray-service.homeEnv" -}}
{{- $env := dict "HOME" "/cache" "USER" "ray" "XDG_CACHE_HOME" "/cache/xdg" "XDG_CONFIG_HOME" "/cache/config"
      "HF_HOME" "/cache/huggingface" "VLLM_CACHE_ROOT" "/cache/vllm" "VLLM_CONFIG_ROOT" "/etc/vllm"
      "TORCHINDUCTOR_CACHE_DIR" "/cache/inductor" "TRITON_CACHE_DIR" "/cache/triton" "NUMBA_CACHE_DIR" "/cache/numba"
      "CUDA_CACHE_PATH" "/cache/cuda" }}
{{- include "ray-service.envList" $env }}
{{- end }}

{{- /* Variables of the group override the common ones, and `env` of the values
       overrides both. */ -}}
{{- define "ray-service.env" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.env" "given" . "names" (list "root" "v" "env" "groupEnv")) -}}
{{- $v := .v }}
{{- $common := dict
      "HF_HUB_OFFLINE" (ternary "1" "0" $v.weights.offline)
      "RAY_USAGE_STATS_ENABLED" "0"
      "VLLM_NO_USAGE_STATS" "1"
      "DO_NOT_TRACK" "1"
      "RAY_SERVE_LLM_ROUTER_HTTP_TIMEOUT" $v.serve.requestTimeoutSeconds
      "RAYLLM_ENABLE_REQUEST_PROMPT_LOGS" "0"
      "VLLM_ALLOW_INSECURE_SERIALIZATION" "0"
      "VLLM_ALLOW_RUNTIME_LORA_UPDATING" "0"
      "VLLM_MEDIA_URL_ALLOW_REDIRECTS" "0"
      "VLLM_MAX_N_SEQUENCES" "64" }}
{{- include "ray-service.homeEnv" $v }}
{{ include "ray-service.envList" (mergeOverwrite $common (include "ray-service.dataPathEnv" $v | fromJson) (include "ray-service.logEnv" $v | fromJson) .groupEnv (include "ray-service.tracingEnv" (dict "root" .root "tracing" $v.tracing) | fromJson) .env) }}
{{- if not $v.weights.offline }}
{{- include "ray-service.hubEnv" $v.weights.download }}
{{- end }}
{{- end }}

{{- define "ray-service.envList" -}}
{{- range $name, $value := include "ray-service.texts" . | fromJson }}
- name: {{ $name | quote }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- /* URL and token of the hub. Takes weights.download. */ -}}
{{- define "ray-service.hubEnv" -}}
{{- with .endpoint }}
{{- include "ray-service.envList" (dict "HF_ENDPOINT" .) }}
{{- end }}
{{- with .tokenSecret }}
{{- if .name }}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .name | quote }}
      key: {{ .key | quote }}
{{- end }}
{{- end }}
{{- end }}
