{{- /* Sources of a release: the chart, and the repository with its values. Takes a dict: v, app. `chart` and `file` of the
       app may be expressions of an ApplicationSet. */ -}}
{{- define "argocd.sources" -}}
{{- include "argocd.arguments" (dict "template" "argocd.sources" "given" . "names" (list "v" "app")) -}}
{{- $charts := .v.charts }}
- repoURL: {{ $charts.url | quote }}
  {{- if $charts.path }}
  path: {{ printf "%s/%s" (trimSuffix "/" $charts.path) .app.chart | quote }}
  {{- else }}
  chart: {{ .app.chart | quote }}
  {{- end }}
  targetRevision: {{ toString $charts.version | quote }}
  helm:
    releaseName: {{ .app.release | quote }}
    valueFiles:
      {{- range prepend (get .app "otherFiles" | default list) .app.file }}
      - {{ printf "$values/%s" (list (trimSuffix "/" $.v.repository.path) . | compact | join "/") | quote }}
      {{- end }}
- repoURL: {{ .v.repository.url | quote }}
  targetRevision: {{ toString .v.repository.revision | quote }}
  ref: values
{{- end }}
