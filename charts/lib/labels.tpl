{{- /* Labels of every object of a release. They contain the chart's version, so Ray pod templates must not have them.
       Takes a dict: root, instance. */ -}}
{{- define "lib.commonLabels" -}}
{{- include "lib.arguments" (dict "template" "lib.commonLabels" "given" . "names" (list "root" "instance")) -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .instance | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: rayhelm
{{- end }}

{{- /* Name, namespace and labels of an object; an object of the cluster has no namespace. Quoted, because YAML reads names
       such as `on` or `1e3` as other types. Takes a dict: root, name, namespace (may be empty). */ -}}
{{- define "lib.metadata" -}}
{{- include "lib.arguments" (dict "template" "lib.metadata" "given" . "names" (list "root" "name" "namespace")) -}}
name: {{ .name | quote }}
{{- with .namespace }}
namespace: {{ . | quote }}
{{- end }}
labels:
  {{- include "lib.labels" .root | nindent 2 }}
{{- end }}
