{{- /* Names are never truncated, because truncated names can collide; validate/ refuses names that are too long. */ -}}
{{- define "gateway.name" -}}
{{ .Values.nameOverride | default .Release.Name }}
{{- end }}

{{- define "gateway.serviceAccountName" -}}
{{- $account := .Values.serviceAccount -}}
{{ $account.name | default (ternary (include "gateway.name" .) "default" $account.create) }}
{{- end }}

{{- /* Backend of a version. HAProxy's names have no slash; validate/ refuses two models with the same result.
       Takes (list model version). */ -}}
{{- define "gateway.backend" -}}
{{ index . 0 | replace "/" "--" }}:{{ index . 1 }}
{{- end }}

{{- /* Host of an endpoint. Takes (list root values endpoint). */ -}}
{{- define "gateway.host" -}}
{{- $root := index . 0 }}
{{- $end := index . 2 }}
{{- if $end.service -}}
{{ $end.service }}-serve-svc.{{ $end.namespace | default $root.Release.Namespace }}.svc.{{ (index . 1).clusterDomain }}
{{- else -}}
{{ $end.host }}
{{- end }}
{{- end }}
