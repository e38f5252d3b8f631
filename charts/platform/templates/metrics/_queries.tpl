{{- /* Queries from the catalog of metrics. What may be missing is made up for, per label: gauges of engines vanish some
       20 s after the last request, and counters come with the first increment, which `rate` and `increase` do not see.
       If nothing of a scope is scraped, there is no number, and no autoscaler should decide. */ -}}

{{- /* Takes a dict: data (the catalog), rule (series, aggregate, quantile), window (seconds), matchers (of labels, as text), by
       (labels to group by). */ -}}
{{- define "platform.query" -}}
{{- include "platform.arguments" (dict "template" "platform.query" "given" . "names" (list "data" "rule" "window" "matchers" "by")) -}}
{{- $all := . }}
{{- $terms := list }}
{{- range .rule.series }}
{{- $terms = append $terms (include "platform.queryTerm" (merge (dict "series" .) $all)) }}
{{- end }}
{{- join " + " $terms }}
{{- end }}

{{- define "platform.queryTerm" -}}
{{- $metric := get .data.metrics .series }}
{{- $scope := get .data.scopes $metric.scraped }}
{{- $pick := printf "{%s}" (compact (list .matchers $metric.where) | join ",") }}
{{- $series := print .series $pick }}
{{- $zero := printf "0 * %s{%s}" $scope.stays .matchers }}
{{- $seconds := int .window }}
{{- /* A sum needs all of its terms. */}}
{{- $vanishes := or (ne $metric.availability "always") (gt (len .rule.series) 1) }}
{{- if eq .rule.aggregate "Rate" }}
{{- $rate := printf "rate(%s[%ds])" $series $seconds }}
{{- if $vanishes }}
{{- $rate = printf "(%s unless %s offset %ds) / %d or %s or %s" $series $series $seconds $seconds $rate $zero }}
{{- end -}}
sum by ({{ .by }}) ({{ $rate }})
{{- else if eq .rule.aggregate "Quantile" }}
{{- $bucket := print .series "_bucket" $pick }}
{{- $born := printf "(%s unless %s offset %ds)" $bucket $bucket $seconds -}}
(histogram_quantile({{ .rule.quantile }}, sum by (le, {{ .by }}) ({{ $born }} or increase({{ $bucket }}[{{ $seconds }}s]))) >= 0 or sum by ({{ .by }}) ({{ $zero }}))
{{- else -}}
{{ lower .rule.aggregate }} by ({{ .by }}) ({{ $series }}{{ if $vanishes }} or {{ $zero }}{{ end }})
{{- end }}
{{- end }}

{{- /* Rules by name, those of every cluster and those of the values, of the scopes that are scraped. Takes a
       dict: root, metrics. */ -}}
{{- define "platform.metricRules" -}}
{{- include "platform.arguments" (dict "template" "platform.metricRules" "given" . "names" (list "root" "metrics")) -}}
{{- $m := .metrics }}
{{- $data := .root.Files.Get "files/metric-catalog.json" | fromJson }}
{{- $scraped := dict "service" $m.services "gateway" $m.gateways }}
{{- $rules := dict }}
{{- range $name, $rule := merge (deepCopy $m.rules) $data.rules }}
{{- $scope := (get $data.metrics (first $rule.series)).scraped }}
{{- if get $scraped $scope }}
{{- $_ := set $rules $name (merge (dict "scope" $scope) $rule (dict "quantile" $m.ttftQuantile)) }}
{{- end }}
{{- end }}
{{- $rules | toJson }}
{{- end }}
