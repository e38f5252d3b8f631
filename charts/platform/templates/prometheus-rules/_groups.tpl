{{- /* Groups of rules as JSON, in the order in which they have to be evaluated.*/ -}}
{{- define "platform.ruleGroups" -}}
{{- include "platform.arguments" (dict "template" "platform.ruleGroups" "given" . "names" (list "root" "values")) }}
{{- $data := .root.Files.Get "files/prometheus-rules.json" | fromJson }}
{{- $groups := list }}
{{- with include "platform.planRules" (dict "values" .values "data" $data) | fromJsonArray }}
{{- $groups = append $groups (dict "name" "rayhelm-plan" "rules" .) }}
{{- end }}
{{- range $name := list "rayhelm-service" "rayhelm-objectives" "rayhelm-cost" }}
{{- $groups = append $groups (dict "name" $name "rules" (get $data.recordings $name)) }}
{{- end }}
{{- $settings := .values.prometheusRules }}
{{- range $name, $alerts := $data.alerts }}
{{- $rules := list }}
{{- range $alerts }}
{{- $own := get $settings.alerts .alert | default dict }}
{{- if and (not $own.disabledReason) (or (ne .alert "Watchdog") $settings.watchdog) }}
{{- $rules = append $rules (include "platform.alertRule" (dict "alert" . "own" $own "settings" $settings) | fromJson) }}
{{- end }}
{{- end }}
{{- with $rules }}
{{- $groups = append $groups (dict "name" $name "rules" .) }}
{{- end }}
{{- end }}
{{- $groups | toJson }}
{{- end }}

{{- /* One alert with what the values change. `own`: its settings, `settings`: those of all. */ -}}
{{- define "platform.alertRule" -}}
{{- include "platform.arguments" (dict "template" "platform.alertRule" "given" . "names" (list "alert" "own" "settings")) }}
{{- $alert := deepCopy .alert }}
{{- with .own.severity }}
{{- $_ := set $alert.labels "severity" . }}
{{- end }}
{{- with get .own "for" }}
{{- $_ := set $alert "for" . }}
{{- end }}
{{- $_ := set $alert "labels" (merge (include "platform.texts" .settings.alertLabels | fromJson) $alert.labels) }}
{{- $_ := set $alert.annotations "runbook_url" (printf "%s/%s.md" .settings.runbookUrl .alert.alert) }}
{{- $alert | toJson }}
{{- end }}

{{- define "platform.rulesNamespace" -}}
{{- include "platform.arguments" (dict "template" "platform.rulesNamespace" "given" . "names" (list "root" "values")) }}
{{- .values.prometheusRules.namespace | default .root.Release.Namespace }}
{{- end }}
