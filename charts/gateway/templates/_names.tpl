{{- /* Names are never truncated, because truncated names can collide; validate/ refuses names that are too long. */ -}}
{{- define "gateway.name" -}}
{{ .Values.nameOverride | default .Release.Name }}
{{- end }}

{{- define "gateway.serviceAccountName" -}}
{{- $account := .Values.serviceAccount -}}
{{ $account.name | default (ternary (include "gateway.name" .) "default" $account.create) }}
{{- end }}

{{- /* Backend of a version. HAProxy's names have no slash; validate/ refuses two models with the same result. */ -}}
{{- define "gateway.backend" -}}
{{- include "gateway.arguments" (dict "template" "gateway.backend" "given" . "names" (list "model" "version")) -}}
{{ .model | replace "/" "--" }}:{{ .version }}
{{- end }}

{{- /* Host of an endpoint. */ -}}
{{- define "gateway.host" -}}
{{- include "gateway.arguments" (dict "template" "gateway.host" "given" . "names" (list "root" "v" "endpoint")) -}}
{{- $root := .root }}
{{- $end := .endpoint }}
{{- if $end.service -}}
{{ $end.service }}-serve-svc.{{ $end.namespace | default $root.Release.Namespace }}.svc.{{ .v.clusterDomain }}
{{- else -}}
{{ $end.host }}
{{- end }}
{{- end }}
