{{- /* The Prometheus adapter's configuration. What it lists is what `stays`: a number is there before its first request and
       after its last. Takes a dict: root, metrics. */ -}}
{{- define "platform.adapterRules" -}}
{{- include "platform.arguments" (dict "template" "platform.adapterRules" "given" . "names" (list "root" "metrics")) -}}
{{- $m := .metrics }}
{{- $data := .root.Files.Get "files/metric-catalog.json" | fromJson }}
{{- $queries := .root.Files.Get "files/scaling-queries.json" | fromJson }}
{{- $lists := dict "Pods" list "External" list }}
{{- range $name, $rule := include "platform.metricRules" . | fromJson }}
{{- $scope := get $data.scopes $rule.scope }}
{{- $pods := eq $scope.api "Pods" }}
{{- $by := ternary "<<.GroupBy>>" (join ", " $scope.by) $pods }}
{{- $query := include "platform.query" (dict "data" $queries "rule" $rule "window" $m.windowSeconds "matchers" "<<.LabelMatchers>>" "by" $by) }}
{{- $overrides := dict "namespace" (dict "resource" "namespace") }}
{{- if $pods }}
{{- $_ := set $overrides "pod" (dict "resource" "pod") }}
{{- end }}
{{- $made := dict "seriesQuery" (get $queries.seriesQueries $rule.scope) "resources" (dict "overrides" $overrides) "name" (dict "as" $name) "metricsQuery" $query }}
{{- $_ := set $lists $scope.api (append (get $lists $scope.api) $made) }}
{{- end }}
{{- dict "rules" $lists.Pods "externalRules" $lists.External | toYaml }}
{{- end }}

{{- define "platform.adapterNamespace" -}}
{{- include "platform.arguments" (dict "template" "platform.adapterNamespace" "given" . "names" (list "root" "v")) -}}
{{- $root := .root -}}
{{ .v.metrics.adapter.namespace | default $root.Release.Namespace }}
{{- end }}

{{- /* Metadata of the adapter's objects. */ -}}
{{- define "platform.adapterMetadata" -}}
{{- include "platform.arguments" (dict "template" "platform.adapterMetadata" "given" . "names" (list "root" "v")) -}}
{{- $root := .root -}}
{{ include "platform.metadata" (dict "root" $root "namespace" (include "platform.adapterNamespace" .) "name" (include "platform.name" (dict "root" $root "part" "metrics"))) }}
{{- end }}

{{- define "platform.adapterSelector" -}}
rayhelm.dev/metrics-adapter: {{ include "platform.name" (dict "root" . "part" "metrics") }}
{{- end }}

{{- /* Name of the adapter's ServiceAccount. */ -}}
{{- define "platform.adapterServiceAccount" -}}
{{- include "platform.arguments" (dict "template" "platform.adapterServiceAccount" "given" . "names" (list "root" "v")) -}}
{{ .v.metrics.adapter.serviceAccount.name | default (include "platform.name" (dict "root" .root "part" "metrics")) }}
{{- end }}
