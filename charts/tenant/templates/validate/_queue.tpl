{{- define "tenant.validateQueue" -}}
{{- $v := . }}
{{- with .kueue }}
{{- if and .localQueue (not .clusterQueue) }}
{{- include "tenant.refuse" (dict "v" $v "id" "queue-without-cluster-queue" "words" (dict "name" .localQueue)) }}
{{- end }}
{{- if and .clusterQueue (not .localQueue) }}
{{- include "tenant.refuse" (dict "v" $v "id" "queue-without-local-queue" "words" (dict "name" .clusterQueue)) }}
{{- end }}
{{- end }}
{{- end }}
