{{- /* Set the defaults that depend on other values. Takes the values, and changes them. */ -}}
{{- define "ray-service.derive" -}}
{{- range list .serve.applications .serve.customApplications }}
{{- range $name, $app := . }}
{{- if not (hasKey $app "routePrefix") }}
{{- $_ := set $app "routePrefix" (printf "/%s" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- /* An autoscaler with nothing to scale would only keep a token of the API server beside the head. KubeRay requires it
       for incremental upgrades. */ -}}
{{- $fixed := ne .upgrade.strategy "NewClusterWithIncrementalUpgrade" }}
{{- range .workerGroups }}
{{- $fixed = and $fixed (eq .minReplicas .maxReplicas) }}
{{- end }}
{{- $_ := set .autoscaler "declared" .autoscaler.enabled }}
{{- $_ := set .autoscaler "enabled" (and .autoscaler.enabled (not $fixed)) }}
{{- end }}
