{{- /* Arguments of the ingress deployment. With the data path Direct there is none, and Ray Serve LLM refuses them. */ -}}
{{- define "ray-service.ingressArgs" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.ingressArgs" "given" . "names" (list "application" "longest")) -}}
{{- $ingress := .application.ingress }}
{{- $options := dict
      "graceful_shutdown_timeout_s" .longest
      "autoscaling_config" (dict
        "min_replicas" $ingress.minReplicas
        "max_replicas" $ingress.maxReplicas
        "target_ongoing_requests" $ingress.targetOngoingRequests) }}
{{- with $ingress.workerGroup }}
{{- $_ := set $options "ray_actor_options" (dict "num_cpus" 1 "resources" (dict (include "ray-service.groupResource" .) 0.001)) }}
{{- end }}
{{- $args := dict "ingress_deployment_config" $options }}
{{- with include "ray-service.ingressClass" .application | fromJson }}
{{- $_ := set $args "ingress_cls_config" . }}
{{- end }}
{{- $args | toJson }}
{{- end }}
