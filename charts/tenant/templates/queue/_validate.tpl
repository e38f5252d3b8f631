{{- /* Takes `kueue`. */ -}}
{{- define "tenant.validateQueue" -}}
{{- if and .localQueue (not .clusterQueue) }}
{{- include "tenant.refuse" (list "queue-without-cluster-queue" (dict "name" .localQueue)) }}
{{- end }}
{{- if and .clusterQueue (not .localQueue) }}
{{- include "tenant.refuse" (list "queue-without-local-queue" (dict "name" .clusterQueue)) }}
{{- end }}
{{- end }}
