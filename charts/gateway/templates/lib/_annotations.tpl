{{- /* Generated from charts/lib/annotations.tpl by `make generate`. Do not edit. */ -}}
{{- /* Annotations of one object and of `commonAnnotations`, as JSON. Takes a dict: root, own (may be empty). */ -}}
{{- define "gateway.annotations" -}}
{{- include "gateway.arguments" (dict "template" "gateway.annotations" "given" . "names" (list "root" "own")) -}}
{{- mergeOverwrite (dict) (.own | default dict) (.root.Values.commonAnnotations | default dict) | toJson }}
{{- end }}

{{- /* Lines of `commonAnnotations` below the `annotations` that a template writes itself; nothing without them. Takes
       the root. */ -}}
{{- define "gateway.commonAnnotations" -}}
{{- with .Values.commonAnnotations }}
{{- include "gateway.textMap" . | nindent 4 }}
{{- end }}
{{- end }}

{{- /* The same as the only annotations of an object, before its labels: templates add labels after these. */ -}}
{{- define "gateway.onlyCommonAnnotations" -}}
{{- with .Values.commonAnnotations }}
annotations:
  {{- include "gateway.textMap" . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Fails on common annotations that the chart, KubeRay, Helm, Argo CD or Kubernetes owns, or that give every
       service account the rights of a cloud. Takes the values with `root`. */ -}}
{{- define "gateway.validateCommonAnnotations" -}}
{{- $bad := list }}
{{- $owned := "(^|\\.)(rayhelm\\.dev|ray\\.io|helm\\.sh|kubernetes\\.io|k8s\\.io|argocd\\.argoproj\\.io)/" }}
{{- $cloud := "^(eks\\.amazonaws\\.com|iam\\.gke\\.io|azure\\.workload\\.identity)/" }}
{{- range $annotation, $_ := .commonAnnotations }}
{{- $why := regexMatch $owned $annotation | ternary "the chart, KubeRay, Helm, Argo CD or Kubernetes owns it" "" }}
{{- $why = regexMatch $cloud $annotation | ternary "it gives every service account the rights of a cloud" $why }}
{{- if $why }}
{{- $bad = append $bad (dict "name" $annotation "why" $why) }}
{{- end }}
{{- end }}
{{- include "gateway.refuseEntries" (dict "v" . "id" "common-annotation" "bad" $bad "given" .commonAnnotations "words" dict) }}
{{- end }}
