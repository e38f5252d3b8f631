{{- define "argocd.validateSources" -}}
{{- $v := . }}
{{- if .releases }}
{{- if not .repository.url }}
{{- include "argocd.refuse" (dict "v" $v "id" "repository-missing" "words" dict) }}
{{- end }}
{{- if regexMatch "^/|(^|/)\\.\\.(/|$)" .repository.path }}
{{- include "argocd.refuse" (dict "v" $v "id" "repository-path" "words" (dict "path" .repository.path)) }}
{{- end }}
{{- if regexMatch "^/|(^|/)\\.\\.(/|$)" .charts.path }}
{{- include "argocd.refuse" (dict "v" $v "id" "charts-path" "words" (dict "path" .charts.path)) }}
{{- end }}
{{- if and (not .charts.path) (eq .charts.url .repository.url) }}
{{- include "argocd.refuse" (dict "v" $v "id" "charts-missing" "words" dict) }}
{{- end }}
{{- if and (not .charts.path) (eq .charts.version (toString .repository.revision)) }}
{{- include "argocd.refuse" (dict "v" $v "id" "charts-version" "words" (dict "url" .charts.url "version" .root.Chart.Version)) }}
{{- end }}
{{- end }}
{{- include "argocd.validateUrl" (dict "v" $v "path" (list "repository" "url") "url" .repository.url) }}
{{- include "argocd.validateUrl" (dict "v" $v "path" (list "charts" "url") "url" .charts.url) }}
{{- end }}

{{- /* Takes a dict: v, path of the key (a list), url. */ -}}
{{- define "argocd.validateUrl" -}}
{{- include "argocd.arguments" (dict "template" "argocd.validateUrl" "given" . "names" (list "v" "path" "url")) -}}
{{- if hasPrefix "oci://" .url }}
{{- include "argocd.refuse" (dict "v" .v "id" "url-oci" "words" (dict "path" .path "url" .url "fixed" (trimPrefix "oci://" .url))) }}
{{- end }}
{{- if regexMatch "://[^/]*:[^/]*@" .url }}
{{- include "argocd.refuse" (dict "v" .v "id" "url-password" "words" (dict "path" .path "fixed" (regexReplaceAll "://[^/]*@" .url "://"))) }}
{{- end }}
{{- end }}
