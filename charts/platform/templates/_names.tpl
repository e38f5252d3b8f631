{{- /* Objects of the cluster have the names that other charts use, so they do not begin with the release's name. */ -}}

{{- /* Name of an object in a namespace. Takes (list root part). */ -}}
{{- define "platform.name" -}}
{{ join "-" (list (index . 0).Release.Name (index . 1)) }}
{{- end }}
