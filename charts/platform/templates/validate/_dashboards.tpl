{{- define "platform.validateDashboards" -}}
{{- $v := . }}
{{- $d := .dashboards }}
{{- $known := list }}
{{- range $path, $_ := .root.Files.Glob "files/dashboards/*.json" }}
{{- $known = append $known (base $path | trimSuffix ".json") }}
{{- end }}
{{- $bad := list }}
{{- range $d.exclude }}
{{- if not (has . $known) }}
{{- $bad = append $bad (dict "name" .) }}
{{- end }}
{{- end }}
{{- $words := dict "known" (join ", " $known) }}
{{- include "platform.refuseEntries" (dict "v" $v "id" "dashboard-unknown" "bad" $bad "given" $d.exclude "words" $words) }}
{{- if and (eq $d.kind "ConfigMap") (not $d.labels) }}
{{- include "platform.refuse" (dict "v" $v "id" "dashboard-labels" "words" dict) }}
{{- end }}
{{- end }}
