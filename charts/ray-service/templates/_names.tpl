{{- /* Names are never truncated, because truncated names can collide; validate/ refuses names that are too long. */ -}}
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

{{- /* Host of the endpoint: KubeRay's Service, or the one of the Gateway with the incremental strategy. */ -}}
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

{{- /* Ray resource that selects the pods of a group. The group's name comes first, because KubeRay takes every
       resource whose name ends in "gpu" for GPUs, and a group is often called "gpu". */ -}}
{{- define "ray-service.groupResource" -}}
{{ . }}.worker-group
{{- end }}
