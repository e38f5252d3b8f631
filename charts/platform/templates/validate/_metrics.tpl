{{- define "platform.validateMetrics" -}}
{{- $v := . }}
{{- include "platform.validateMetricRules" . }}
{{- include "platform.validateAdapter" . }}
{{- include "platform.validateAutoscalers" . }}
{{- if and (eq .metrics.scraping.kind "ConfigMap") (not .metrics.services) (not .metrics.gateways) }}
{{- include "platform.refuse" (dict "v" $v "id" "scrape-targets-missing" "words" dict) }}
{{- end }}
{{- end }}

{{- define "platform.validateMetricRules" -}}
{{- $v := . }}
{{- $m := .metrics }}
{{- $data := .root.Files.Get "files/metric-catalog.json" | fromJson }}
{{- $scraped := dict "service" $m.services "gateway" $m.gateways }}
{{- range $name, $rule := $m.rules }}
{{- $scopes := list }}
{{- range $series := $rule.series }}
{{- $words := dict "rule" $name "series" $series }}
{{- $metric := get $data.metrics $series }}
{{- if hasKey $data.absent $series }}
{{- include "platform.refuse" (dict "v" $v "id" "metric-absent" "words" (merge $words (dict "instead" (get $data.absent $series)))) }}
{{- end }}
{{- if not $metric }}
{{- include "platform.refuse" (dict "v" $v "id" "metric-unknown" "words" $words) }}
{{- end }}
{{- if not (hasKey $data.scopes $metric.scraped) }}
{{- include "platform.refuse" (dict "v" $v "id" "metric-exporter" "words" (merge $words (dict "who" $metric.scraped))) }}
{{- end }}
{{- if not (get $scraped $metric.scraped) }}
{{- include "platform.refuse" (dict "v" $v "id" "metric-not-scraped" "words" (merge $words (dict "who" $metric.scraped "key" (printf "%ss" $metric.scraped)))) }}
{{- end }}
{{- if eq $metric.availability "once" }}
{{- include "platform.refuse" (dict "v" $v "id" "metric-short-lived" "words" $words) }}
{{- end }}
{{- $takes := get $data.aggregates $rule.aggregate }}
{{- if ne $takes $metric.type }}
{{- $fits := list }}
{{- range $aggregate, $type := $data.aggregates }}
{{- if eq $type $metric.type }}
{{- $fits = append $fits $aggregate }}
{{- end }}
{{- end }}
{{- include "platform.refuse" (dict "v" $v "id" "metric-aggregate" "words" (merge $words (dict "aggregate" $rule.aggregate "takes" $takes "type" $metric.type "fits" (first $fits)))) }}
{{- end }}
{{- $scopes = append $scopes $metric.scraped }}
{{- end }}
{{- if or (gt (len (uniq $scopes)) 1) (and (gt (len $rule.series) 1) (has $rule.aggregate (list "Max" "Quantile"))) }}
{{- include "platform.refuse" (dict "v" $v "id" "metric-sum" "words" (dict "rule" $name "first" (first $rule.series) "aggregate" $rule.aggregate "names" (join ", " $rule.series))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "platform.validateAdapter" -}}
{{- $v := . }}
{{- include "platform.validatePod" (dict "v" . "path" "metrics.adapter" "pod" .metrics.adapter "env" dict "volumes" (list "config" "certificate") "mounts" (list "/dev" "/proc" "/sys" "/etc/adapter" "/var/run/secrets" "/var/run/serving-cert")) }}
{{- $m := .metrics }}
{{- $adapter := $m.adapter }}
{{- if eq $adapter.kind "Managed" }}
{{- if and (not $m.services) (not $m.gateways) }}
{{- include "platform.refuse" (dict "v" $v "id" "adapter-metrics-missing" "words" dict) }}
{{- end }}
{{- if not $m.prometheusUrl }}
{{- include "platform.refuse" (dict "v" $v "id" "prometheus-url" "words" (dict "who" "adapter kind Managed")) }}
{{- end }}
{{- if and (not $adapter.image.digest) (has $adapter.image.tag (list "" "latest")) }}
{{- include "platform.refuse" (dict "v" $v "id" "adapter-image" "words" (dict "image" (include "platform.image" $adapter.image))) }}
{{- end }}
{{- $tls := $adapter.tls }}
{{- if and $tls.caBundle (not $tls.secretName) }}
{{- include "platform.refuse" (dict "v" $v "id" "adapter-ca" "words" dict) }}
{{- end }}
{{- if and (not $tls.caBundle) (not $tls.skipVerifyReason) }}
{{- include "platform.refuse" (dict "v" $v "id" "adapter-tls" "words" dict) }}
{{- end }}
{{- end }}
{{- end }}
