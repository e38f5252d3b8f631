{{- /* Text of each dashboard that is not excluded, by name. Without a URL of the runbooks the links to them are removed. Takes a dict: root, values. */ -}}
{{- define "platform.dashboards" -}}
{{- include "platform.arguments" (dict "template" "platform.dashboards" "given" . "names" (list "root" "values")) }}
{{- $root := .root }}
{{- $d := .values.dashboards }}
{{- $url := $d.runbookUrl | default .values.prometheusRules.runbookUrl }}
{{- $texts := dict }}
{{- range $path, $text := $root.Files.Glob "files/dashboards/*.json" }}
{{- $name := base $path | trimSuffix ".json" }}
{{- if not (has $name $d.exclude) }}
{{- $json := toString $text | replace "\"hide\": 0,\n    \"label\": \"URL of docs/runbooks\"" "\"hide\": 2,\n    \"label\": \"URL of docs/runbooks\"" }}
{{- $json = regexReplaceAll `("name": "runbooks",\n +"query": )""` $json (printf `${1}%s` (toJson $url)) }}
{{- if not $url }}
{{- $json = regexReplaceAll `\n +"links": \[\n +\{[^}]*\$\{runbooks\}/[^}]*\}\n +\],` $json "" }}
{{- $json = regexReplaceAll `\[\s+\{[^{}]*\$\{runbooks\}/\$\{__value.raw\}[^{}]*\}\s+\]` $json "[]" }}
{{- end }}
{{- $_ := set $texts $name $json }}
{{- end }}
{{- end }}
{{- toJson $texts }}
{{- end }}
