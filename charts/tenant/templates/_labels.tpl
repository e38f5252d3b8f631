{{- define "tenant.labels" -}}
{{ include "tenant.commonLabels" (dict "root" . "instance" (include "tenant.name" .)) }}
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

{{- /* Annotations of objects that stay after an uninstall. Only for objects that every set of values renders: Helm keeps the
       others too when an edit of the values removes them. */ -}}
{{- define "tenant.stays" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false,Delete=false
{{- end }}
