{{- /* Names are never truncated, because truncated names can collide; validate/ refuses names that are too long. */ -}}
{{- define "tenant.name" -}}
{{ .Values.nameOverride | default .Release.Name }}
{{- end }}

{{- define "tenant.namespace" -}}
{{- $own := ternary (include "tenant.name" .) .Release.Namespace .Values.namespace.manage -}}
{{ .Values.namespace.name | default $own }}
{{- end }}
