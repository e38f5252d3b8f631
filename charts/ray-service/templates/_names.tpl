{{- /* Names. None is ever cut: a cut name meets another one some day; too long is refused in validate/. */ -}}

{{- define "ray-service.name" -}}
{{ .Values.nameOverride | default .Release.Name }}
{{- end }}

{{- define "ray-service.serviceAccountName" -}}
{{- $account := .Values.serviceAccount -}}
{{ $account.name | default (ternary (include "ray-service.name" .) "default" $account.create) }}
{{- end }}

{{- define "ray-service.claimName" -}}
{{ .Values.weights.claim.existingClaim | default (printf "%s-weights" (include "ray-service.name" .)) }}
{{- end }}

{{- /* Host that answers requests: KubeRay's Service, or the Gateway's with the incremental strategy. */ -}}
{{- define "ray-service.host" -}}
{{- if eq .Values.upgrade.strategy "NewClusterWithIncrementalUpgrade" -}}
{{ .Values.upgrade.incremental.gatewayService }}
{{- else -}}
{{ include "ray-service.name" . }}-serve-svc.{{ .Release.Namespace }}.svc.{{ .Values.clusterDomain }}
{{- end }}
{{- end }}

{{- define "ray-service.port" -}}
{{ ternary 80 (int .Values.serve.port) (eq .Values.upgrade.strategy "NewClusterWithIncrementalUpgrade") }}
{{- end }}

{{- /* Ray resource by which a model finds the pods of a group. The name comes first: KubeRay takes every resource
       whose name ends in "gpu" for GPUs, and "gpu" is what people call a group. */ -}}
{{- define "ray-service.groupResource" -}}
{{ . }}.worker-group
{{- end }}
