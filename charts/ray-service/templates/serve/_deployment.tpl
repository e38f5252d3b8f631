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
{{- if not (hasKey . "prefill") }}
{{- $router := include "ray-service.requestRouter" (dict "v" $values "model" .) | fromJson }}
{{- if $router }}
{{- $_ := set $config "request_router_config" $router }}
{{- end }}
{{- end }}
{{- $config | toJson }}
{{- end }}
{{- end }}

{{- /* Choice of the replica. With Direct, Ray's classes find no prefix and look at no load; rayhelm's can run if all nodes have it, and its Ray. */ -}}
{{- define "ray-service.requestRouter" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.requestRouter" "given" . "names" (list "v" "model")) -}}
{{- $v := .v }}
{{- $isDirect := eq $v.serve.dataPath "Direct" }}
{{- $scaling := .model.autoscaling }}
{{- $chooses := or (gt (int $scaling.maxReplicas) 1) (eq (int $scaling.minReplicas) 0) }}
{{- $class := "" }}
{{- $arguments := dict }}
{{- with .model.router }}
{{- if eq .kind "PrefixAffinity" }}
{{- $class = $isDirect | ternary "rayhelm.runtime.prompt_router.PromptRouter" "ray.serve.llm.request_router.PrefixCacheAffinityRouter" }}
{{- $arguments = dict "imbalanced_threshold" .imbalanceThreshold "match_rate_threshold" .matchRateThreshold "do_eviction" true }}
{{- else if and $isDirect $chooses (include "ray-service.haveRouters" $v) }}
{{- $class = "rayhelm.runtime.load_router.LoadRouter" }}
{{- end }}
{{- end }}
{{- $config := dict }}
{{- if $class }}
{{- $_ := set $config "request_router_class" $class }}
{{- end }}
{{- if $arguments }}
{{- $_ := set $config "request_router_kwargs" $arguments }}
{{- end }}
{{- $config | toJson }}
{{- end }}
