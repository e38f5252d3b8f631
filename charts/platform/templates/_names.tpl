{{- /* Objects of the cluster have the names that other charts use, so they do not begin with the release's name. */ -}}

{{- /* Name of an object in a namespace. */ -}}
{{- define "platform.name" -}}
{{- include "platform.arguments" (dict "template" "platform.name" "given" . "names" (list "root" "part")) -}}
{{ join "-" (list .root.Release.Name .part) }}
{{- end }}
