{{- /* Objects of the cluster have the names that other charts use, so they do not begin with the release's name. */ -}}

{{- /* Name of an object in a namespace. */ -}}
{{- define "platform.name" -}}
{{- include "platform.arguments" (dict "template" "platform.name" "given" . "names" (list "root" "part")) -}}
{{ join "-" (list .root.Release.Name .part) }}
{{- end }}

{{- /* Start of the command that sets values of a release of another chart, in the version that is installed. */ -}}
{{- define "platform.upgrade" -}}
{{- include "platform.arguments" (dict "template" "platform.upgrade" "given" . "names" (list "release" "chart" "namespace")) -}}
helm upgrade {{ .release }} {{ .chart }} --namespace {{ .namespace }} --reset-then-reuse-values --version "$(helm get metadata {{ .release }} --namespace {{ .namespace }} | sed -n 's/^VERSION: //p')"
{{- end }}
