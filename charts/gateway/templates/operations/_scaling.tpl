{{- /* Only backends of models have a colon in their names. `rayhelm_dev_gateway` is the pod label that the PodMonitor copies. Takes (list root values). */ -}}
{{- define "gateway.requestsInFlight" -}}
{{- $root := index . 0 -}}
sum(haproxy_backend_current_sessions{namespace="{{ $root.Release.Namespace }}",rayhelm_dev_gateway="{{ include "gateway.name" $root }}",proxy=~".+:.+"})
{{- end }}

{{- define "gateway.scalingBehavior" -}}
scaleDown:
  stabilizationWindowSeconds: {{ int .autoscaling.scaleDownSeconds }}
{{- end }}
