{{- /* Kinds that an AppProject may install, as JSON of a list. Takes a dict: root, v, project, scope (`cluster` or
       `namespaced`). */ -}}
{{- define "argocd.kinds" -}}
{{- include "argocd.arguments" (dict "template" "argocd.kinds" "given" . "names" (list "root" "v" "project" "scope")) -}}
{{- $known := .root.Files.Get "files/kinds.json" | fromJson }}
{{- $names := get (get $known .project) .scope | default list }}
{{- $project := .project }}
{{- $isCluster := eq .scope "cluster" }}
{{- range $name, $extra := .v.project.extraKinds }}
{{- if and (eq $extra.project $project) (eq $extra.clusterScoped $isCluster) }}
{{- $names = append $names $name }}
{{- end }}
{{- end }}
{{- /* Argo CD checks a namespace that it creates itself too. */}}
{{- if eq .scope "cluster" }}
{{- range $name, $app := .v.releases }}
{{- if and $app.createNamespace (eq $project (include "argocd.projectOf" $app.chart)) }}
{{- $names = append $names "Namespace" }}
{{- end }}
{{- end }}
{{- end }}
{{- $kinds := list }}
{{- range $names | uniq | sortAlpha }}
{{- $kinds = append $kinds (dict "group" (contains "/" . | ternary (dir .) "") "kind" (base .)) }}
{{- end }}
{{- $kinds | toJson }}
{{- end }}

{{- /* Clusters and namespaces of an AppProject, each pair once. Takes a dict: root, v, project. */ -}}
{{- define "argocd.projectDestinations" -}}
{{- include "argocd.arguments" (dict "template" "argocd.projectDestinations" "given" . "names" (list "v" "project")) -}}
{{- $v := .v }}
{{- $project := .project }}
{{- $seen := dict }}
{{- if eq $project "operators" }}
{{- range $name, $app := $v.operators }}
{{- /* Charts of operators bind roles in kube-system. */}}
{{- range list $app.namespace "kube-system" }}
{{- $_ := set $seen (include "argocd.destination" (dict "v" $v "cluster" $app.cluster "namespace" .) | trim) true }}
{{- end }}
{{- end }}
{{- else if eq $project "platform" }}
{{- /* Chart tenant has objects in the namespaces of all tenants. */}}
{{- range $cluster, $_ := $v.clusters }}
{{- $_ := set $seen (include "argocd.destination" (dict "v" $v "cluster" $cluster "namespace" "*") | trim) true }}
{{- end }}
{{- else }}
{{- range $name, $app := $v.releases }}
{{- if eq $project (include "argocd.projectOf" $app.chart) }}
{{- range prepend $app.otherNamespaces $app.namespace }}
{{- $_ := set $seen (include "argocd.destination" (dict "v" $v "cluster" $app.cluster "namespace" .) | trim) true }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $text, $_ := $seen }}
- {{ $text | indent 2 | trim }}
{{- end }}
{{- end }}

{{- /* Repositories that an AppProject may read, each once. Takes a dict: v, project. */ -}}
{{- define "argocd.projectRepositories" -}}
{{- include "argocd.arguments" (dict "template" "argocd.projectRepositories" "given" . "names" (list "v" "project")) -}}
{{- $urls := list .v.repository.url .v.charts.url }}
{{- if eq .project "operators" }}
{{- $urls = list }}
{{- range $name, $app := .v.operators }}
{{- $urls = append $urls $app.url }}
{{- end }}
{{- end }}
{{- range $urls | uniq | sortAlpha }}
- {{ . | quote }}
{{- end }}
{{- end }}
