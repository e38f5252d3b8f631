{{- /* Rules across fields, which the closed schema cannot hold; their words are in files/rules.json. Takes the values
       with `root`. */ -}}
{{- define "argocd.validate" -}}
{{- include "argocd.validateSources" . }}
{{- include "argocd.validateClusters" . }}
{{- include "argocd.validateReleases" . }}
{{- include "argocd.validateOperators" . }}
{{- include "argocd.validateIgnored" . }}
{{- end }}
