{{- /* Name of an Application. Names are never truncated; validate/ refuses names that are too long. */ -}}
{{- define "argocd.applicationName" -}}
{{- include "argocd.arguments" (dict "template" "argocd.applicationName" "given" . "names" (list "root" "name")) -}}
{{ .root.Release.Name }}-{{ .name }}
{{- end }}

{{- /* Sync waves of the charts of rayhelm; operators are before them. */ -}}
{{- define "argocd.waves" -}}
{"platform": -20, "tenant": -10, "ray-service": 0, "gateway": 10}
{{- end }}

{{- /* AppProject of a chart. Takes the name of the chart. */ -}}
{{- define "argocd.projectOf" -}}
{{ has . (list "platform" "tenant") | ternary "platform" "services" }}
{{- end }}

{{- define "argocd.projectName" -}}
{{- include "argocd.arguments" (dict "template" "argocd.projectName" "given" . "names" (list "root" "chart")) -}}
{{ .root.Release.Name }}-{{ include "argocd.projectOf" .chart }}
{{- end }}
