{{- define "platform.validatePrometheusRules" -}}
{{- $v := . }}
{{- $rules := .prometheusRules }}
{{- $data := .root.Files.Get "files/prometheus-rules.json" | fromJson }}
{{- if and (ne $rules.kind "None") (not $rules.runbookUrl) }}
{{- include "platform.refuse" (dict "v" $v "id" "rules-runbook" "words" dict) }}
{{- end }}
{{- $known := list }}
{{- range $data.alerts }}
{{- range . }}
{{- $known = append $known .alert }}
{{- end }}
{{- end }}
{{- $bad := list }}
{{- range $name, $_ := $rules.alerts }}
{{- if not (has $name $known) }}
{{- $bad = append $bad (dict "name" $name "why" "there is no such alert") }}
{{- end }}
{{- end }}
{{- include "platform.refuseEntries" (dict "v" $v "id" "rules-alert" "bad" $bad "words" (dict "known" (sortAlpha $known | join ", "))) }}
{{- $bad = list }}
{{- range $reserved := list "alertname" "severity" }}
{{- if hasKey $rules.alertLabels $reserved }}
{{- $bad = append $bad (dict "name" $reserved) }}
{{- end }}
{{- end }}
{{- include "platform.refuseEntries" (dict "v" $v "id" "rules-label" "bad" $bad "given" $rules.alertLabels "words" dict) }}
{{- range $service, $_ := $rules.gpuPrices }}
{{- if not (hasKey $v.metrics.services $service) }}
{{- include "platform.refuse" (dict "v" $v "id" "rules-service" "words" (dict "path" (printf "prometheusRules.gpuPrices.%s" $service) "service" $service "services" (keys $v.metrics.services | sortAlpha | join ", " | default "none"))) }}
{{- end }}
{{- end }}
{{- $seen := dict }}
{{- range $name, $model := $rules.models }}
{{- $words := dict "path" (list "prometheusRules" "models" $name) "model" $name "service" $model.service "gateway" $model.gateway }}
{{- if not (hasKey $v.metrics.services $model.service) }}
{{- include "platform.refuse" (dict "v" $v "id" "rules-service" "words" (merge (dict "services" (keys $v.metrics.services | sortAlpha | join ", " | default "none")) $words)) }}
{{- end }}
{{- if and $model.gateway (not (hasKey $v.metrics.gateways $model.gateway)) }}
{{- include "platform.refuse" (dict "v" $v "id" "rules-gateway" "words" (merge (dict "gateways" (keys $v.metrics.gateways | sortAlpha | join ", " | default "none")) $words)) }}
{{- end }}
{{- $label := $model.servedAs | default $name }}
{{- $key := printf "%s/%s" $model.service $label }}
{{- with get $seen $key }}
{{- include "platform.refuse" (dict "v" $v "id" "rules-model" "words" (merge (dict "label" $label "other" .) $words)) }}
{{- end }}
{{- $_ := set $seen $key $name }}
{{- range $id, $target := dict "ttft" $model.slo.ttftSeconds "tpot" $model.slo.tpotSeconds }}
{{- $boundaries := get $data.boundaries $id }}
{{- if and $target (not (include "platform.boundary" (dict "boundaries" $boundaries "target" $target))) }}
{{- include "platform.refuse" (dict "v" $v "id" "slo-boundary" "words" (merge (dict "slo" $id "target" (toJson $target) "last" (last $boundaries | float64 | toJson)) $words)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
