{{- /* Only backends of models have a colon in their names. `rayhelm_dev_gateway` is the pod label that the PodMonitor copies. */ -}}
{{- define "gateway.requestsInFlight" -}}
sum(haproxy_backend_current_sessions{namespace="{{ .Release.Namespace }}",rayhelm_dev_gateway="{{ include "gateway.name" . }}",proxy=~".+:.+"})
{{- end }}

{{- define "gateway.scalingBehavior" -}}
scaleDown:
  stabilizationWindowSeconds: {{ int .autoscaling.scaleDownSeconds }}
{{- end }}
