{{- define "platform.validateDashboards" -}}
{{- $v := . }}
{{- $d := .dashboards }}
{{- $known := list }}
{{- range $path, $_ := .root.Files.Glob "files/dashboards/*.json" }}
{{- $known = append $known (base $path | trimSuffix ".json") }}
{{- end }}
{{- range $d.exclude }}
{{- if not (has . $known) }}
{{- include "platform.refuse" (dict "v" $v "id" "dashboard-unknown" "words" (dict "name" . "known" (join ", " $known) "one" (first $known))) }}
{{- end }}
{{- end }}
{{- if and (eq $d.kind "ConfigMap") (not $d.labels) }}
{{- include "platform.refuse" (dict "v" $v "id" "dashboard-labels" "words" dict) }}
{{- end }}
{{- end }}
