{{- /* Defaults that follow from other values. Takes the values, and changes them. */ -}}
{{- define "argocd.derive" -}}
{{- if not .charts.url }}
{{- $_ := set .charts "url" .repository.url }}
{{- end }}
{{- if not .charts.version }}
{{- $_ := set .charts "version" (toString .repository.revision) }}
{{- end }}
{{- end }}
