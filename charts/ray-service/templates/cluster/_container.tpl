{{- /* Parts that head, workers and autoscaler share. */ -}}

{{- /* Takes (list root group), the head being a group here. */ -}}
{{- define "ray-service.podCommon" -}}
{{- $group := index . 1 -}}
terminationGracePeriodSeconds: {{ int $group.terminationGracePeriodSeconds }}
{{- with $group.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with include "ray-service.pullSecrets" (index . 0) }}
{{ . }}
{{- end }}
securityContext:
  {{- include "ray-service.podSecurity" (index . 0) | nindent 2 }}
  {{- with get $group "supplementalGroups" }}
  supplementalGroups:
    {{- range . }}
    - {{ int . }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /* Requests and limits of one size: Ray counts the limits, the scheduler the requests. Takes (list sizes devices). */ -}}
{{- define "ray-service.resources" -}}
{{- $all := mergeOverwrite (dict "cpu" (toString (index . 0).cpu) "memory" (toString (index . 0).memory)) (index . 1) }}
limits:
  {{- toYaml $all | nindent 2 }}
requests:
  {{- toYaml $all | nindent 2 }}
{{- end }}

{{- /* The root is read-only, so every cache is told where to go; USER, because torch asks for a name that a foreign
       image's passwd may not know. */ -}}
{{- define "ray-service.homeEnv" -}}
{{- $env := dict "HOME" "/cache" "USER" "ray" "XDG_CACHE_HOME" "/cache/xdg" "XDG_CONFIG_HOME" "/cache/config"
      "HF_HOME" "/cache/huggingface" "VLLM_CACHE_ROOT" "/cache/vllm" "VLLM_CONFIG_ROOT" "/etc/vllm"
      "TORCHINDUCTOR_CACHE_DIR" "/cache/inductor" "TRITON_CACHE_DIR" "/cache/triton" "NUMBA_CACHE_DIR" "/cache/numba"
      "CUDA_CACHE_PATH" "/cache/cuda" }}
{{- include "ray-service.envList" $env }}
{{- end }}

{{- /* Takes (list values own group): the group's variables win over the common ones, people's own over both. */ -}}
{{- define "ray-service.env" -}}
{{- $v := index . 0 }}
{{- $common := dict
      "HF_HUB_OFFLINE" (ternary "1" "0" $v.weights.offline)
      "RAY_USAGE_STATS_ENABLED" "0"
      "VLLM_NO_USAGE_STATS" "1"
      "DO_NOT_TRACK" "1"
      "RAYLLM_ENABLE_REQUEST_PROMPT_LOGS" "0"
      "VLLM_ALLOW_INSECURE_SERIALIZATION" "0"
      "VLLM_ALLOW_RUNTIME_LORA_UPDATING" "0"
      "VLLM_MEDIA_URL_ALLOW_REDIRECTS" "0"
      "VLLM_MAX_N_SEQUENCES" "64" }}
{{- include "ray-service.homeEnv" $v }}
{{ include "ray-service.envList" (mergeOverwrite $common (index . 2) (include "ray-service.texts" (index . 1) | fromJson)) }}
{{- if not $v.weights.offline }}
{{- include "ray-service.tokenEnv" $v.weights.download.tokenSecret }}
{{- end }}
{{- end }}

{{- define "ray-service.envList" -}}
{{- range $name, $value := . }}
- name: {{ $name }}
  value: {{ $value | quote }}
{{- end }}
{{- end }}

{{- define "ray-service.tokenEnv" -}}
{{- if .name }}
- name: HF_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .name }}
      key: {{ .key }}
{{- end }}
{{- end }}

{{- define "ray-service.mounts" -}}
- name: shm
  mountPath: /dev/shm
- name: tmp
  mountPath: /tmp
- name: cache
  mountPath: /cache
- name: vllm-config
  mountPath: /etc/vllm
  readOnly: true
{{- end }}

{{- /* Takes (list root shmSize cacheSize). */ -}}
{{- define "ray-service.volumes" -}}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ index . 1 }}
- name: tmp
  emptyDir: {}
- name: cache
  emptyDir:
    sizeLimit: {{ index . 2 }}
- name: vllm-config
  configMap:
    name: {{ include "ray-service.name" (index . 0) }}-vllm
{{- end }}
