{{- /* Serve's autoscaling_config. */ -}}
{{- define "ray-service.autoscaling" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.autoscaling" "given" . "names" (list "v" "scaling")) -}}
{{- $values := .v }}
{{- with .scaling }}
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
{{- $_ := set $config "policy" (include "ray-service.engineQueue" (dict "v" $values "policy" .) | fromJson) }}
{{- end }}
{{- end }}
{{- $config | toJson }}
{{- end }}
{{- end }}

{{- /* rayhelm's autoscaling policy, by its path in the image. */ -}}
{{- define "ray-service.engineQueue" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.engineQueue" "given" . "names" (list "v" "policy")) -}}
{{- with .policy }}
{{- $arguments := dict
      "prometheus_address" $.v.serve.prometheus.url
      "goal" .ttftObjective
      "waiting" .maxWaitingRequests
      "window_s" (int .windowSeconds) }}
{{- with .ttftSeconds }}
{{- $_ := set $arguments "ttft_s" . }}
{{- end }}
{{- dict "policy_function" "rayhelm.runtime.engine_queue.policy:EngineQueuePolicy" "policy_kwargs" $arguments | toJson }}
{{- end }}
{{- end }}
