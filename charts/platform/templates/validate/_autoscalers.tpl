{{- define "platform.validateAutoscalers" -}}
{{- $v := . }}
{{- $m := .metrics }}
{{- $data := .root.Files.Get "files/metric-catalog.json" | fromJson }}
{{- $rules := include "platform.metricRules" (dict "root" .root "metrics" $m) | fromJson }}
{{- $ofServices := list }}
{{- range $name, $rule := $rules }}
{{- if and (eq $rule.scope "service") (has $rule.aggregate (list "Sum" "Rate")) }}
{{- $ofServices = append $ofServices $name }}
{{- end }}
{{- end }}
{{- $targets := dict }}
{{- range $name, $scaler := $m.autoscalers }}
{{- $words := dict "scaler" $name "kind" $scaler.target.kind "target" $scaler.target.name "service" $scaler.service "metric" $scaler.metric }}
{{- if not (hasKey $data.scalable $scaler.target.kind) }}
{{- $why := get $data.unscalable $scaler.target.kind | default "it is not one of the kinds with a scale subresource that rayhelm knows" }}
{{- include "platform.refuse" (dict "v" $v "id" "autoscaler-target" "words" (merge $words (dict "why" $why))) }}
{{- end }}
{{- if not (hasKey $m.services $scaler.service) }}
{{- include "platform.refuse" (dict "v" $v "id" "autoscaler-service" "words" (merge $words (dict "services" (keys $m.services | sortAlpha | join ", " | default "none")))) }}
{{- end }}
{{- if not (has $scaler.metric $ofServices) }}
{{- include "platform.refuse" (dict "v" $v "id" "autoscaler-metric" "words" (merge $words (dict "metrics" (join ", " $ofServices) "one" (first $ofServices)))) }}
{{- end }}
{{- if or $scaler.value (not $scaler.averageValue) }}
{{- include "platform.refuse" (dict "v" $v "id" "autoscaler-target-value" "words" (merge $words (dict "amount" ($scaler.averageValue | default $scaler.value | default 8)))) }}
{{- end }}
{{- if gt $scaler.minReplicas $scaler.maxReplicas }}
{{- include "platform.refuse" (dict "v" $v "id" "autoscaler-bounds" "words" (merge $words (dict "min" (int $scaler.minReplicas) "max" (int $scaler.maxReplicas)))) }}
{{- end }}
{{- $target := printf "%s/%s/%s" (get $m.services $scaler.service).namespace $scaler.target.kind $scaler.target.name }}
{{- with get $targets $target }}
{{- include "platform.refuse" (dict "v" $v "id" "autoscaler-twice" "words" (merge $words (dict "other" .))) }}
{{- end }}
{{- $_ := set $targets $target $name }}
{{- if and (eq $scaler.kind "HPA") (or (eq $m.adapter.kind "None") (and (eq $m.adapter.kind "Managed") (not $m.adapter.externalApi))) }}
{{- include "platform.refuse" (dict "v" $v "id" "autoscaler-adapter" "words" $words) }}
{{- end }}
{{- if and (eq $scaler.kind "KEDA") (not $m.prometheusUrl) }}
{{- include "platform.refuse" (dict "v" $v "id" "prometheus-url" "words" (dict "who" "KEDA")) }}
{{- end }}
{{- end }}
{{- end }}
