{{- /* One LLMConfig of Ray Serve LLM. Takes (list values id model root). */ -}}
{{- define "ray-service.llmConfig" -}}
{{- $values := index . 0 }}
{{- $model := index . 2 }}
{{- $loading := dict "model_id" (index . 1) "model_source" (include "ray-service.modelSource" (list $values $model)) }}
{{- with $model.tokenizer }}
{{- $_ := set $loading "tokenizer_source" (include "ray-service.modelSource" (list $values (dict "source" . "revision" $model.tokenizerRevision))) }}
{{- end }}
{{- $config := dict
      "model_loading_config" $loading
      "engine_kwargs" (include "ray-service.engineKwargs" (list $values $model (index . 3)) | fromJson)
      "accelerator_config" (dict "kind" $model.accelerator.kind)
      "placement_group_config" (include "ray-service.placement" $model | fromJson)
      "deployment_config" (include "ray-service.deploymentConfig" (list $values $model) | fromJson) }}
{{- with $model.acceleratorType }}
{{- $_ := set $config "accelerator_type" . }}
{{- end }}
{{- $env := include "ray-service.texts" $model.env | fromJson }}
{{- if lt $model.gpuFraction 1.0 }}

{{- /* Ray derives the GPU share from the bundle only for the task that reads the engine's configuration. The engine
       inherits the replica's environment, and would request whole GPUs for its workers without this variable. */}}
{{- $_ := set $env "VLLM_RAY_PER_WORKER_GPUS" ($model.gpuFraction | toJson) }}
{{- end }}
{{- with $env }}
{{- $_ := set $config "runtime_env" (dict "env_vars" .) }}
{{- end }}
{{- $config | toJson }}
{{- end }}

{{- /* Path of a model: hub models are read from the volume, if there is one. */ -}}
{{- define "ray-service.modelSource" -}}
{{- $values := index . 0 }}
{{- $model := index . 1 }}
{{- if and $values.weights.enabled (include "ray-service.isHubId" $model.source) -}}
{{ include "ray-service.hubPath" (list $values $model.source $model.revision) }}
{{- else -}}
{{ $model.source }}
{{- end }}
{{- end }}

{{- define "ray-service.isHubId" -}}
{{- if regexMatch "^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9._-]+)?$" . }}true{{ end }}
{{- end }}

{{- /* Engine arguments: the typed ones, those of the task, and `extra`. Takes (list values model root). */ -}}
{{- define "ray-service.engineKwargs" -}}
{{- $values := index . 0 }}
{{- $model := index . 1 }}
{{- $kwargs := dict }}
{{- range $key, $value := omit $model.engine "extra" }}
{{- $_ := set $kwargs (snakecase $key) $value }}
{{- end }}
{{- $kwargs = merge $kwargs (get ((index . 2).Files.Get "files/tasks.json" | fromJson) $model.task).engine_arguments }}
{{- if and $model.revision (not $values.weights.enabled) }}
{{- $_ := set $kwargs "revision" $model.revision }}
{{- end }}
{{- $tokenizer := ternary $model.tokenizerRevision $model.revision (hasKey $model "tokenizer") }}
{{- if and $tokenizer (not $values.weights.enabled) }}
{{- $_ := set $kwargs "tokenizer_revision" $tokenizer }}
{{- end }}
{{- mergeOverwrite $kwargs $model.engine.extra | toJson }}
{{- end }}
