{{- /* Serve's autoscaling_config. Takes (list values scaling). */ -}}
{{- define "ray-service.autoscaling" -}}
{{- $values := index . 0 }}
{{- with index . 1 }}
{{- $config := dict
      "min_replicas" .minReplicas
      "max_replicas" .maxReplicas
      "target_ongoing_requests" .targetOngoingRequests
      "upscale_delay_s" .upscaleDelaySeconds
      "downscale_delay_s" .downscaleDelaySeconds
      "look_back_period_s" .lookBackPeriodSeconds }}
{{- if hasKey . "initialReplicas" }}
{{- $_ := set $config "initial_replicas" .initialReplicas }}
{{- end }}
{{- if hasKey . "downscaleToZeroDelaySeconds" }}
{{- $_ := set $config "downscale_to_zero_delay_s" .downscaleToZeroDelaySeconds }}
{{- end }}
{{- with get . "policy" }}
{{- if eq .kind "EngineQueue" }}
{{- $_ := set $config "policy" (include "ray-service.engineQueue" (list $values .) | fromJson) }}
{{- end }}
{{- end }}
{{- $config | toJson }}
{{- end }}
{{- end }}

{{- /* rayhelm's autoscaling policy, by its path in the image. Takes (list values policy). */ -}}
{{- define "ray-service.engineQueue" -}}
{{- with index . 1 }}
{{- $arguments := dict
      "prometheus_address" (index $ 0).serve.prometheus.url
      "goal" .ttftObjective
      "waiting" .maxWaitingRequests
      "window_s" (int .windowSeconds) }}
{{- with .ttftSeconds }}
{{- $_ := set $arguments "ttft_s" . }}
{{- end }}
{{- dict "policy_function" "rayhelm.runtime.engine_queue.policy:EngineQueuePolicy" "policy_kwargs" $arguments | toJson }}
{{- end }}
{{- end }}
