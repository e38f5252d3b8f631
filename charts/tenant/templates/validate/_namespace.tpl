{{- define "tenant.validateNamespace" -}}
{{- $v := . }}
{{- $root := .root }}
{{- $namespace := .namespace }}
{{- $name := include "tenant.namespace" $root }}
{{- if gt (len $name) 63 }}
{{- include "tenant.refuse" (dict "v" $v "id" "namespace-length" "words" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if regexMatch "^(default$|kube-)" $name }}
{{- include "tenant.refuse" (dict "v" $v "id" "namespace-reserved" "words" (dict "name" $name)) }}
{{- end }}
{{- if and .namespace.manage (eq $name $root.Release.Namespace) }}
{{- include "tenant.refuse" (dict "v" $v "id" "namespace-release" "words" (dict "name" $name "release" $root.Release.Name)) }}
{{- end }}
{{- range $kind := list "labels" "annotations" }}
{{- $bad := list }}
{{- range $key, $_ := get $namespace $kind }}
{{- if regexMatch "^(pod-security\\.kubernetes\\.io|kubernetes\\.io|app\\.kubernetes\\.io|helm\\.sh|meta\\.helm\\.sh|rayhelm\\.dev)/|^argocd\\.argoproj\\.io/sync-options$" $key }}
{{- $bad = append $bad (dict "name" $key) }}
{{- end }}
{{- end }}
{{- $words := dict "path" (list "namespace" $kind) }}
{{- include "tenant.refuseEntries" (dict "v" $v "id" "label-reserved" "bad" $bad "given" (get $namespace $kind) "words" $words) }}
{{- end }}
{{- if eq .dashboardFolder "rayhelm" }}
{{- include "tenant.refuse" (dict "v" $v "id" "dashboard-folder" "words" dict) }}
{{- end }}
{{- if and (ne .podSecurity.level "restricted") (not .podSecurity.reason) }}
{{- include "tenant.refuse" (dict "v" $v "id" "pod-security-reason" "words" (dict "level" .podSecurity.level)) }}
{{- end }}
{{- end }}
