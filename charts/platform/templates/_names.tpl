{{- /* Names. None is ever cut: a cut name meets another one some day; too long is refused in validate/. Objects of the
       cluster have the names that other charts call them by, and so do not begin with the release's. */ -}}

{{- /* Takes (list root part). */ -}}
{{- define "platform.name" -}}
{{ join "-" (list (index . 0).Release.Name (index . 1)) }}
{{- end }}
