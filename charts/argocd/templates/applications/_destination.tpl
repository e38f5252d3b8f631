{{- /* Takes a dict: v, cluster, namespace. */ -}}
{{- define "argocd.destination" -}}
{{- include "argocd.arguments" (dict "template" "argocd.destination" "given" . "names" (list "v" "cluster" "namespace")) -}}
{{- $cluster := get .v.clusters .cluster }}
{{- with $cluster.server }}
server: {{ . | quote }}
{{- end }}
{{- with $cluster.name }}
name: {{ . | quote }}
{{- end }}
namespace: {{ .namespace | quote }}
{{- end }}
