{{- /* The query of a rule, from files/scaling-queries.json. What may be missing is 0 there, by label: gauges of engines vanish
       some 20 s after the last request, and counters appear with the first increment. If nothing of a scope is scraped,
       there is no data, and no autoscaler decides. Takes a dict: data (the file), rule (series, aggregate, quantile), window
       (seconds), matchers (of labels, as text), by (labels to group by). */ -}}
{{- define "platform.query" -}}
{{- include "platform.arguments" (dict "template" "platform.query" "given" . "names" (list "data" "rule" "window" "matchers" "by")) -}}
{{- $queries := get .data.queries .rule.aggregate }}
{{- $ofSums := dict }}
{{- if gt (len .rule.series) 1 }}
{{- $ofSums = get .data.terms .rule.aggregate }}
{{- end }}
{{- $terms := list }}
{{- range .rule.series }}
{{- $terms = append $terms (get $ofSums . | default (get $queries .)) }}
{{- end }}
{{- join " + " $terms | replace "<<.WindowSeconds>>" (int .window | toString) | replace "<<.Quantile>>" (toString .rule.quantile) | replace "<<.LabelMatchers>>" .matchers | replace "<<.GroupBy>>" .by }}
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
