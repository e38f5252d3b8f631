{{- /* Names. None is ever cut: a cut name meets another one some day; too long is refused in validate/. */ -}}

{{- define "tenant.name" -}}
{{ .Values.nameOverride | default .Release.Name }}
{{- end }}

{{- define "tenant.namespace" -}}
{{- $own := ternary (include "tenant.name" .) .Release.Namespace .Values.namespace.manage -}}
{{ .Values.namespace.name | default $own }}
{{- end }}
