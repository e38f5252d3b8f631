{{- /* One LLMConfig of Ray Serve LLM. Takes (list values id model). */ -}}
{{- define "ray-service.llmConfig" -}}
{{- $values := index . 0 }}
{{- $model := index . 2 }}
{{- $loading := dict "model_id" (index . 1) "model_source" (include "ray-service.modelSource" (list $values $model)) }}
{{- with $model.tokenizer }}
{{- $_ := set $loading "tokenizer_source" . }}
{{- end }}
{{- $config := dict
      "model_loading_config" $loading
      "engine_kwargs" (include "ray-service.engineKwargs" (list $values $model) | fromJson)
      "accelerator_config" (dict "kind" $model.accelerator.kind)
      "placement_group_config" (include "ray-service.placement" $model | fromJson)
      "deployment_config" (include "ray-service.deploymentConfig" $model | fromJson) }}
{{- with $model.acceleratorType }}
{{- $_ := set $config "accelerator_type" . }}
{{- end }}
{{- $env := include "ray-service.texts" $model.env | fromJson }}
{{- if lt $model.gpuFraction 1.0 }}
{{- /* Ray books the share in the bundle; vLLM has to be told as well, or its worker asks for a whole card. */}}
{{- $_ := set $env "VLLM_RAY_PER_WORKER_GPUS" ($model.gpuFraction | toJson) }}
{{- end }}
{{- with $env }}
{{- $_ := set $config "runtime_env" (dict "env_vars" .) }}
{{- end }}
{{- $config | toJson }}
{{- end }}

{{- /* Hub models are read from the volume, where there is one. */ -}}
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

{{- /* Keyword arguments of the engine: the typed ones, those that follow from the task, and `extra`. */ -}}
{{- define "ray-service.engineKwargs" -}}
{{- $values := index . 0 }}
{{- $model := index . 1 }}
{{- $kwargs := dict }}
{{- range $key, $value := omit $model.engine "extra" }}
{{- $_ := set $kwargs (snakecase $key) $value }}
{{- end }}
{{- if has $model.task (list "embed" "rerank") }}
{{- $_ := set $kwargs "runner" "pooling" }}
{{- end }}
{{- if and $model.revision (not $values.weights.enabled) }}
{{- $_ := set $kwargs "revision" $model.revision }}
{{- $_ := set $kwargs "tokenizer_revision" $model.revision }}
{{- end }}
{{- mergeOverwrite $kwargs $model.engine.extra | toJson }}
{{- end }}

{{- /* Bundles of the placement group: one for each GPU, on the group that the model or its stage names. */ -}}
{{- define "ray-service.placement" -}}
{{- $model := . }}
{{- $base := ternary (dict "CPU" 1) (dict "GPU" $model.gpuFraction) (eq $model.accelerator.kind "cpu") }}
{{- $base = merge $base $model.resources }}
{{- $placement := dict "strategy" $model.placementStrategy }}
{{- if le (len $model.workerGroups) 1 }}
{{- range $model.workerGroups }}
{{- $_ := set $base (include "ray-service.groupResource" .) 0.001 }}
{{- end }}
{{- $_ := set $placement "bundle_per_worker" $base }}
{{- else }}
{{- $bundles := list }}
{{- range $model.workerGroups }}
{{- $bundle := merge (dict (include "ray-service.groupResource" .) 0.001) $base }}
{{- range until (int $model.engine.tensorParallelSize) }}
{{- $bundles = append $bundles $bundle }}
{{- end }}
{{- end }}
{{- $_ := set $placement "bundles" $bundles }}
{{- end }}
{{- $placement | toJson }}
{{- end }}

{{- define "ray-service.deploymentConfig" -}}
{{- $scaling := .autoscaling }}
{{- $config := dict
      "autoscaling_config" (dict
        "min_replicas" $scaling.minReplicas
        "max_replicas" $scaling.maxReplicas
        "target_ongoing_requests" $scaling.targetOngoingRequests
        "upscale_delay_s" $scaling.upscaleDelaySeconds
        "downscale_delay_s" $scaling.downscaleDelaySeconds
        "look_back_period_s" $scaling.lookBackSeconds)
      "max_ongoing_requests" (.maxOngoingRequests | default (mulf 1.5 $scaling.targetOngoingRequests | ceil))
      "max_queued_requests" .maxQueuedRequests
      "health_check_period_s" .healthCheck.periodSeconds
      "health_check_timeout_s" .healthCheck.timeoutSeconds
      "graceful_shutdown_timeout_s" .gracefulShutdownSeconds
      "ray_actor_options" (dict "num_cpus" .replicaCpus) }}
{{- if eq .router.kind "PrefixAffinity" }}
{{- $_ := set $config "request_router_config" (dict
      "request_router_class" "ray.serve.llm.request_router.PrefixCacheAffinityRouter"
      "request_router_kwargs" (dict
        "imbalanced_threshold" .router.imbalanceThreshold
        "match_rate_threshold" .router.matchRateThreshold
        "do_eviction" true)) }}
{{- end }}
{{- $config | toJson }}
{{- end }}
