{{- /* Bundles of the placement group: one for each GPU, on the worker group of the model or of the stage. */ -}}
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
{{- include "ray-service.arguments" (dict "template" "ray-service.deploymentConfig" "given" . "names" (list "v" "model")) -}}
{{- $values := .v }}
{{- with .model }}
{{- $config := dict
      "autoscaling_config" (include "ray-service.autoscaling" (dict "v" $values "scaling" .autoscaling) | fromJson)
      "max_ongoing_requests" (.maxOngoingRequests | default (mulf 1.5 .autoscaling.targetOngoingRequests | ceil))
      "max_queued_requests" .maxQueuedRequests
      "health_check_period_s" .healthCheck.periodSeconds
      "health_check_timeout_s" .healthCheck.timeoutSeconds
      "graceful_shutdown_timeout_s" .gracefulShutdownSeconds
      "ray_actor_options" (dict "num_cpus" .replicaCpus) }}
{{- /* Prompts are computed elsewhere: the router of the model is the one of those replicas. */}}
{{- if and (eq .router.kind "PrefixAffinity") (not (hasKey . "prefill")) }}
{{- /* With Direct, Ray's class finds no prefix. */}}
{{- $ours := eq $values.serve.dataPath "Direct" }}
{{- $_ := set $config "request_router_config" (dict
      "request_router_class" ($ours | ternary "rayhelm.runtime.prompt_router.PromptRouter" "ray.serve.llm.request_router.PrefixCacheAffinityRouter")
      "request_router_kwargs" (dict
        "imbalanced_threshold" .router.imbalanceThreshold
        "match_rate_threshold" .router.matchRateThreshold
        "do_eviction" true)) }}
{{- end }}
{{- $config | toJson }}
{{- end }}
{{- end }}
