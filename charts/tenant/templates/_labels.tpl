{{- define "tenant.labels" -}}
{{ include "tenant.commonLabels" (dict "root" . "instance" (include "tenant.name" .)) }}
rayhelm.dev/tenant: {{ include "tenant.name" . }}
{{- end }}

{{- /* Metadata of an object in the tenant's namespace. `part` may be empty. */ -}}
{{- define "tenant.partMetadata" -}}
{{- include "tenant.arguments" (dict "template" "tenant.partMetadata" "given" . "names" (list "root" "part")) -}}
{{- $name := list (include "tenant.name" .root) .part | compact | join "-" -}}
{{ include "tenant.metadata" (merge (dict "name" $name "namespace" (include "tenant.namespace" .root)) .) }}
{{- end }}

{{- /* Annotations of objects that stay after an uninstall. Only for objects that every set of values renders: Helm keeps the
       others too when an edit of the values removes them. */ -}}
{{- define "tenant.stays" -}}
helm.sh/resource-policy: keep
argocd.argoproj.io/sync-options: Prune=false,Delete=false
{{- end }}
