{{- define "tenant.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name (.Chart.Version | replace "+" "_") }}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ include "tenant.name" . }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: rayhelm
rayhelm.dev/tenant: {{ include "tenant.name" . }}
{{- end }}

{{- /* Metadata of an object in the tenant's namespace. Takes (list root) or (list root part). */ -}}
{{- define "tenant.metadata" -}}
{{- $root := index . 0 -}}
name: {{ prepend (rest .) (include "tenant.name" $root) | join "-" }}
namespace: {{ include "tenant.namespace" $root }}
labels:
  {{- include "tenant.labels" $root | nindent 2 }}
{{- end }}

{{- /* What stays when the release goes. Only for objects that are rendered whatever the values say: Helm leaves the others
       standing too when an edit of values takes them away. */ -}}
{{- define "tenant.stays" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false,Delete=false
{{- end }}
