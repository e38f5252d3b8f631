{{- /* Models' backends alone have a colon in their names. `rayhelm_dev_gateway` is the pods' label, which the PodMonitor of
       this chart keeps. Takes (list root values). */ -}}
{{- define "gateway.requestsInFlight" -}}
{{- $root := index . 0 -}}
sum(haproxy_backend_current_sessions{namespace="{{ $root.Release.Namespace }}",rayhelm_dev_gateway="{{ include "gateway.name" $root }}",proxy=~".+:.+"})
{{- end }}

{{- define "gateway.scalingBehavior" -}}
scaleDown:
  stabilizationWindowSeconds: {{ int .autoscaling.scaleDownSeconds }}
{{- end }}
