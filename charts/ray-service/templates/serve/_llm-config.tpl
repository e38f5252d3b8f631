{{- /* One LLMConfig of Ray Serve LLM. */ -}}
{{- define "ray-service.llmConfig" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.llmConfig" "given" . "names" (list "v" "id" "model" "root")) -}}
{{- $values := .v }}
{{- $model := .model }}
{{- $loading := dict "model_id" .id "model_source" (include "ray-service.modelSource" (dict "v" $values "model" $model)) }}
{{- with $model.tokenizer }}
{{- $_ := set $loading "tokenizer_source" (include "ray-service.modelSource" (dict "v" $values "model" (dict "source" . "revision" $model.tokenizerRevision))) }}
{{- end }}
{{- $config := dict
      "model_loading_config" $loading
      "engine_kwargs" (include "ray-service.engineKwargs" (dict "v" $values "model" $model "root" .root) | fromJson)
      "accelerator_config" (dict "kind" $model.accelerator.kind)
      "placement_group_config" (include "ray-service.placement" $model | fromJson)
      "deployment_config" (include "ray-service.deploymentConfig" (dict "v" $values "model" $model) | fromJson) }}
{{- with $model.acceleratorType }}
{{- $_ := set $config "accelerator_type" . }}
{{- end }}
{{- $env := include "ray-service.texts" $model.env | fromJson }}
{{- if lt $model.gpuFraction 1.0 }}

{{- /* Ray derives the GPU share from the bundle only for the task that reads the engine's configuration. The engine
       inherits the replica's environment, and would request whole GPUs for its workers without this variable. */}}
{{- $_ := set $env "VLLM_RAY_PER_WORKER_GPUS" ($model.gpuFraction | toJson) }}
{{- end }}
{{- with get $model "prefill" }}
{{- $_ := set $config.engine_kwargs "kv_transfer_config" (include "ray-service.kvTransfer" (dict "prefill" . "role" "kv_consumer") | fromJson) }}
{{- end }}
{{- with $env }}
{{- $_ := set $config "runtime_env" (dict "env_vars" .) }}
{{- end }}
{{- $config | toJson }}
{{- end }}

{{- /* Path of a model: downloaded models are read from the volume, if there is one. */ -}}
{{- define "ray-service.modelSource" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.modelSource" "given" . "names" (list "v" "model")) -}}
{{- $values := .v }}
{{- $model := .model }}
{{- if and $values.weights.enabled (include "ray-service.downloadedFrom" (dict "source" $model.source "revision" $model.revision)) -}}
{{ include "ray-service.downloadPath" (dict "v" $values "source" $model.source "revision" $model.revision) }}
{{- else -}}
{{ $model.source }}
{{- end }}
{{- end }}

{{- define "ray-service.isHubId" -}}
{{- if regexMatch "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)?$" . }}true{{ end }}
{{- end }}

{{- /* Engine arguments: the typed ones, those of the task, `extra` and `unchecked`. */ -}}
{{- define "ray-service.engineKwargs" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.engineKwargs" "given" . "names" (list "v" "model" "root")) -}}
{{- $values := .v }}
{{- $model := .model }}
{{- $kwargs := dict }}
{{- range $key, $value := omit $model.engine "extra" "unchecked" }}
{{- $_ := set $kwargs (snakecase $key) $value }}
{{- end }}
{{- $kwargs = merge $kwargs (get (.root.Files.Get "files/tasks.json" | fromJson) $model.task).engine_arguments }}
{{- if and $model.revision (not $values.weights.enabled) }}
{{- $_ := set $kwargs "revision" $model.revision }}
{{- end }}
{{- $tokenizer := ternary $model.tokenizerRevision $model.revision (hasKey $model "tokenizer") }}
{{- if and $tokenizer (not $values.weights.enabled) }}
{{- $_ := set $kwargs "tokenizer_revision" $tokenizer }}
{{- end }}
{{- $kwargs = merge $kwargs (include "ray-service.loraKwargs" (dict "v" $values "model" $model) | fromJson) }}
{{- if $values.tracing.enabled }}
{{- $_ := set $kwargs "otlp_traces_endpoint" (include "ray-service.tracesUrl" $values.tracing) }}
{{- end }}
{{- if eq $model.task "chat" }}

{{- /* A chat names images by URL, and vLLM fetches them: from the metadata service of a cloud too. vLLM takes an empty list for
       no limit, so this one has a name that never resolves. `engine.extra` replaces it. */}}
{{- $_ := set $kwargs "allowed_media_domains" (list "none.invalid") }}
{{- end }}
{{- mergeOverwrite $kwargs $model.engine.extra $model.engine.unchecked | toJson }}
{{- end }}
