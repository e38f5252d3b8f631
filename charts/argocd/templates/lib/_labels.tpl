{{- /* Generated from charts/lib/labels.tpl by `make generate`. Do not edit. */ -}}
{{- /* Labels of every object of a release. They contain the chart's version, so Ray pod templates must not have them.
       Takes a dict: root, instance. */ -}}
{{- define "argocd.commonLabels" -}}
{{- include "argocd.arguments" (dict "template" "argocd.commonLabels" "given" . "names" (list "root" "instance")) -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .instance | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: rayhelm
{{- end }}

{{- /* Name, namespace and labels of an object; an object of the cluster has no namespace. Quoted, because YAML reads names
       such as `on` or `1e3` as other types. Takes a dict: root, name, namespace (may be empty). */ -}}
{{- define "argocd.metadata" -}}
{{- include "argocd.arguments" (dict "template" "argocd.metadata" "given" . "names" (list "root" "name" "namespace")) -}}
name: {{ .name | quote }}
{{- with .namespace }}
namespace: {{ . | quote }}
{{- end }}
labels:
  {{- include "argocd.labels" .root | nindent 2 }}
{{- end }}
