{{- define "argocd.validateClusters" -}}
{{- $v := . }}
{{- range $name, $cluster := .clusters }}
{{- if eq (empty $cluster.server) (empty $cluster.name) }}
{{- include "argocd.refuse" (dict "v" $v "id" "cluster-destination" "words" (dict "cluster" $name "count" (ternary "neither" "both" (empty $cluster.server)))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "argocd.validateReleases" -}}
{{- $v := . }}
{{- $seen := dict }}
{{- range $name, $app := .releases }}
{{- include "argocd.validateName" (dict "v" $v "path" (list "releases" $name) "name" $name) }}
{{- include "argocd.validateCluster" (dict "v" $v "path" (list "releases" $name) "cluster" $app.cluster) }}
{{- if regexMatch "^/|(^|/)\\.\\.(/|$)" $app.file }}
{{- include "argocd.refuse" (dict "v" $v "id" "release-file" "words" (dict "name" $name "file" $app.file)) }}
{{- end }}
{{- $bad := list }}
{{- range $annotation, $_ := $app.annotations }}
{{- if regexMatch "^argocd\\.argoproj\\.io/(sync-wave|compare-options|tracking-id|refresh)$" $annotation }}
{{- $bad = append $bad (dict "name" $annotation) }}
{{- end }}
{{- end }}
{{- include "argocd.refuseEntries" (dict "v" $v "id" "release-annotation" "bad" $bad "given" $app.annotations "words" (dict "name" $name)) }}
{{- if and (eq $v.kind "ApplicationSet") (or $app.otherFiles $app.annotations) }}
{{- include "argocd.refuse" (dict "v" $v "id" "release-of-set" "words" (dict "name" $name "key" ($app.otherFiles | empty | ternary "annotations" "otherFiles"))) }}
{{- end }}
{{- $same := printf "%s/%s/%s" $app.cluster $app.namespace $app.release }}
{{- with get $seen $same }}
{{- include "argocd.refuse" (dict "v" $v "id" "release-duplicate" "words" (dict "name" $name "first" . "release" $app.release "namespace" $app.namespace)) }}
{{- end }}
{{- $_ := set $seen $same $name }}
{{- end }}
{{- end }}

{{- define "argocd.validateOperators" -}}
{{- $v := . }}
{{- range $name, $app := .operators }}
{{- include "argocd.validateName" (dict "v" $v "path" (list "operators" $name) "name" $name) }}
{{- include "argocd.validateCluster" (dict "v" $v "path" (list "operators" $name) "cluster" $app.cluster) }}
{{- include "argocd.validateUrl" (dict "v" $v "path" (list "operators" $name "url") "url" $app.url) }}
{{- if eq (empty $app.chart) (empty $app.path) }}
{{- include "argocd.refuse" (dict "v" $v "id" "operator-source" "words" (dict "name" $name "count" (ternary "neither" "both" (empty $app.chart)))) }}
{{- end }}
{{- if hasKey $v.releases $name }}
{{- include "argocd.refuse" (dict "v" $v "id" "operator-name" "words" (dict "name" $name)) }}
{{- end }}
{{- if ge (int $app.wave) -20 }}
{{- include "argocd.refuse" (dict "v" $v "id" "operator-wave" "words" (dict "name" $name "wave" (int $app.wave))) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "argocd.validateIgnored" -}}
{{- $v := . }}
{{- range $name, $field := .ignoreDifferences }}
{{- if not (or $field.jsonPointers $field.jqPathExpressions $field.managedFieldsManagers) }}
{{- include "argocd.refuse" (dict "v" $v "id" "ignored-nothing" "words" (dict "name" $name "kind" $field.kind)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes a dict: v, path (a list), name. */ -}}
{{- define "argocd.validateName" -}}
{{- include "argocd.arguments" (dict "template" "argocd.validateName" "given" . "names" (list "v" "path" "name")) -}}
{{- $full := include "argocd.applicationName" (dict "root" .v.root "name" .name) }}
{{- if gt (len $full) 63 }}
{{- include "argocd.refuse" (dict "v" .v "id" "name-length" "words" (dict "path" (join "." .path) "name" $full "length" (len $full))) }}
{{- end }}
{{- end }}

{{- /* Takes a dict: v, path (a list), cluster. */ -}}
{{- define "argocd.validateCluster" -}}
{{- include "argocd.arguments" (dict "template" "argocd.validateCluster" "given" . "names" (list "v" "path" "cluster")) -}}
{{- if not (hasKey .v.clusters .cluster) }}
{{- include "argocd.refuse" (dict "v" .v "id" "cluster-unknown" "words" (dict "path" (join "." .path) "cluster" .cluster "known" (keys .v.clusters | sortAlpha | join ", " | default "none"))) }}
{{- end }}
{{- end }}
