{{- /* Takes `metrics`. */ -}}
{{- define "platform.validateMetrics" -}}
{{- include "platform.validateMetricRules" . }}
{{- include "platform.validateAdapter" . }}
{{- include "platform.validateAutoscalers" . }}
{{- if and .scrapeConfigs (not .services) (not .gateways) }}
{{- include "platform.refuse" (list "scrape-nothing" dict) }}
{{- end }}
{{- end }}

{{- define "platform.validateMetricRules" -}}
{{- $m := . }}
{{- $data := include "platform.metricCatalog" . | fromJson }}
{{- $scraped := dict "service" $m.services "gateway" $m.gateways }}
{{- range $name, $rule := .rules }}
{{- $scopes := list }}
{{- range $series := $rule.series }}
{{- $words := dict "rule" $name "series" $series }}
{{- $metric := get $data.metrics $series }}
{{- if hasKey $data.absent $series }}
{{- include "platform.refuse" (list "metric-absent" (merge $words (dict "instead" (get $data.absent $series)))) }}
{{- end }}
{{- if not $metric }}
{{- include "platform.refuse" (list "metric-unknown" $words) }}
{{- end }}
{{- if not (hasKey $data.scopes $metric.scraped) }}
{{- include "platform.refuse" (list "metric-of-others" (merge $words (dict "who" $metric.scraped))) }}
{{- end }}
{{- if not (get $scraped $metric.scraped) }}
{{- include "platform.refuse" (list "metric-not-scraped" (merge $words (dict "who" $metric.scraped "key" (printf "%ss" $metric.scraped)))) }}
{{- end }}
{{- if eq $metric.availability "once" }}
{{- include "platform.refuse" (list "metric-vanishes" $words) }}
{{- end }}
{{- $takes := get $data.aggregates $rule.aggregate }}
{{- if ne $takes $metric.type }}
{{- $fits := list }}
{{- range $aggregate, $type := $data.aggregates }}
{{- if eq $type $metric.type }}
{{- $fits = append $fits $aggregate }}
{{- end }}
{{- end }}
{{- include "platform.refuse" (list "metric-aggregate" (merge $words (dict "aggregate" $rule.aggregate "takes" $takes "type" $metric.type "fits" (first $fits)))) }}
{{- end }}
{{- $scopes = append $scopes $metric.scraped }}
{{- end }}
{{- if or (gt (len (uniq $scopes)) 1) (and (gt (len $rule.series) 1) (has $rule.aggregate (list "Max" "Quantile"))) }}
{{- include "platform.refuse" (list "metric-sum" (dict "rule" $name "first" (first $rule.series) "aggregate" $rule.aggregate "names" (join ", " $rule.series))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "platform.validateAdapter" -}}
{{- $adapter := .adapter }}
{{- if eq $adapter.kind "Managed" }}
{{- if and (not .services) (not .gateways) }}
{{- include "platform.refuse" (list "adapter-nothing" dict) }}
{{- end }}
{{- if not .prometheusUrl }}
{{- include "platform.refuse" (list "prometheus-url" (dict "who" "a managed adapter")) }}
{{- end }}
{{- if and (not $adapter.image.digest) (has $adapter.image.tag (list "" "latest")) }}
{{- include "platform.refuse" (list "adapter-image" (dict "image" (include "platform.adapterImage" $adapter.image))) }}
{{- end }}
{{- $tls := $adapter.tls }}
{{- if and $tls.caBundle (not $tls.secretName) }}
{{- include "platform.refuse" (list "adapter-authority" dict) }}
{{- end }}
{{- if and (not $tls.caBundle) (not $tls.skipVerifyReason) }}
{{- include "platform.refuse" (list "adapter-tls" dict) }}
{{- end }}
{{- end }}
{{- end }}
