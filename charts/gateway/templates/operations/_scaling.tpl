{{- /* The query of KEDA, from files/scaling-queries.json. */ -}}
{{- define "gateway.requestsInFlight" -}}
{{- $queries := .Files.Get "files/scaling-queries.json" | fromJson }}
{{- $queries.requestsInFlight | replace "<<.Namespace>>" .Release.Namespace | replace "<<.Gateway>>" (include "gateway.name" .) }}
{{- end }}

{{- define "gateway.scalingBehavior" -}}
scaleDown:
  stabilizationWindowSeconds: {{ int .autoscaling.scaleDownSeconds }}
{{- end }}
