{{- /* Generated from charts/lib/labels.tpl by `make generate`. Do not edit. */ -}}
{{- /* Labels of every object of a release. They contain the chart's version, so Ray pod templates must not have them.
       Takes a dict: root, instance. */ -}}
{{- define "argocd.commonLabels" -}}
{{- include "argocd.arguments" (dict "template" "argocd.commonLabels" "given" . "names" (list "root" "instance")) -}}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name (.root.Chart.Version | replace "+" "_") }}
{{ include "argocd.recommendedLabels" . }}
{{- with .root.Values.commonLabels }}
{{ include "argocd.textMap" . }}
{{- end }}
{{- end }}

{{- /* Kubernetes' recommended labels without the chart's version, so that a new version alone replaces no pod. Ray pods have
       KubeRay's: with others the RayService would get a new RayCluster. Takes a dict: root, instance. */ -}}
{{- define "argocd.recommendedLabels" -}}
{{- include "argocd.arguments" (dict "template" "argocd.recommendedLabels" "given" . "names" (list "root" "instance")) -}}
app.kubernetes.io/name: {{ .root.Chart.Name }}
app.kubernetes.io/instance: {{ .instance | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
app.kubernetes.io/part-of: rayhelm
{{- end }}

{{- /* Fails on common labels that the chart, KubeRay, Helm or Kubernetes owns. Takes the values with `root`. */ -}}
{{- define "argocd.validateCommonLabels" -}}
{{- $bad := list }}
{{- range $label, $_ := .commonLabels }}
{{- if regexMatch "(^|\\.)(rayhelm\\.dev|ray\\.io|helm\\.sh|kubernetes\\.io|(x-)?k8s\\.io)/" $label }}
{{- $bad = append $bad (dict "name" $label) }}
{{- end }}
{{- end }}
{{- include "argocd.refuseEntries" (dict "v" . "id" "common-label" "bad" $bad "given" .commonLabels "words" dict) }}
{{- end }}

{{- /* Name, namespace, common annotations and labels of an object; an object of the cluster has no namespace. Quoted,
       because YAML reads names such as `on` or `1e3` as other types. Takes a dict: root, name, namespace (may be empty),
       and `annotated` where the template writes `annotations` itself. */ -}}
{{- define "argocd.metadata" -}}
{{- include "argocd.arguments" (dict "template" "argocd.metadata" "given" . "names" (list "root" "name" "namespace")) -}}
name: {{ .name | quote }}
{{- with .namespace }}
namespace: {{ . | quote }}
{{- end }}
{{- if not .annotated }}
{{- include "argocd.onlyCommonAnnotations" .root }}
{{- end }}
labels:
  {{- include "argocd.labels" .root | nindent 2 }}
{{- end }}

{{- /* Labels of one kind of object without those that commonLabels has: YAML has a key once. Takes a dict: root, labels. */ -}}
{{- define "argocd.otherLabels" -}}
{{- include "argocd.arguments" (dict "template" "argocd.otherLabels" "given" . "names" (list "root" "labels")) }}
{{- $labels := deepCopy .labels }}
{{- range $label, $_ := .root.Values.commonLabels }}
{{- $_ := unset $labels $label }}
{{- end }}
{{- toJson $labels }}
{{- end }}
