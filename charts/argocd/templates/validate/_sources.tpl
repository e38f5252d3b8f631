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
{{- range $name, $operator := .operators }}
{{- include "argocd.validateUrl" (dict "v" $v "path" (list "operators" $name "url") "url" $operator.url) }}
{{- end }}
{{- end }}

{{- /* Takes a dict: v, path of the key (a list), url. */ -}}
{{- define "argocd.validateUrl" -}}
{{- include "argocd.arguments" (dict "template" "argocd.validateUrl" "given" . "names" (list "v" "path" "url")) -}}
{{- if hasPrefix "oci://" .url }}
{{- include "argocd.refuse" (dict "v" .v "id" "url-oci" "words" (dict "path" .path "url" .url "fixed" (trimPrefix "oci://" .url))) }}
{{- end }}
{{- $authority := regexReplaceAll "^([A-Za-z][A-Za-z0-9+.-]*://)?([^/?#]*).*$" .url "${2}" }}
{{- $isSsh := or (regexMatch "^(git\\+)?ssh://" .url) (not (contains "://" .url)) }}
{{- if and (contains "@" $authority) (or (not $isSsh) (regexMatch ":.*@" $authority)) }}
{{- include "argocd.refuse" (dict "v" .v "id" "url-password" "words" (dict "path" .path "fixed" (regexReplaceAll "^([A-Za-z][A-Za-z0-9+.-]*://)?[^/]*@" .url "${1}"))) }}
{{- end }}
{{- if regexMatch "[?#]" .url }}
{{- include "argocd.refuse" (dict "v" .v "id" "url-query" "words" (dict "path" .path "fixed" (regexReplaceAll "[?#].*$" .url ""))) }}
{{- end }}
{{- end }}
