{{- /* Takes (list root values). */ -}}
{{- define "tenant.validateNamespace" -}}
{{- $root := index . 0 }}
{{- with index . 1 }}
{{- $namespace := .namespace }}
{{- $name := include "tenant.namespace" $root }}
{{- if gt (len $name) 63 }}
{{- include "tenant.refuse" (list "namespace-length" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if regexMatch "^(default$|kube-)" $name }}
{{- include "tenant.refuse" (list "namespace-reserved" (dict "name" $name)) }}
{{- end }}
{{- if and .namespace.manage (eq $name $root.Release.Namespace) }}
{{- include "tenant.refuse" (list "namespace-of-release" (dict "name" $name "release" $root.Release.Name)) }}
{{- end }}
{{- range $kind := list "labels" "annotations" }}
{{- range $key, $_ := get $namespace $kind }}
{{- if regexMatch "^(pod-security\\.kubernetes\\.io|kubernetes\\.io|app\\.kubernetes\\.io|helm\\.sh|meta\\.helm\\.sh|rayhelm\\.dev)/|^argocd\\.argoproj\\.io/sync-options$" $key }}
{{- include "tenant.refuse" (list "label-reserved" (dict "path" (printf "namespace.%s" $kind) "name" $key)) }}
{{- end }}
{{- end }}
{{- end }}
{{- if and (ne .podSecurity.level "restricted") (not .podSecurity.reason) }}
{{- include "tenant.refuse" (list "pod-security-reason" (dict "level" .podSecurity.level)) }}
{{- end }}
{{- end }}
{{- end }}
