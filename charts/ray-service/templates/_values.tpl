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
{{- if and .autoscaler.enabled .networkPolicy.apiServer.lookup (not .networkPolicy.apiServer.cidrs) }}
{{- include "ray-service.lookUpApiServer" .networkPolicy.apiServer }}
{{- end }}
{{- end }}

{{- /* Set the addresses of the API server, and add its ports. `lookup` finds nothing without a cluster (`helm template`,
       Argo CD). Takes networkPolicy.apiServer, and changes it. */ -}}
{{- define "ray-service.lookUpApiServer" -}}
{{- $cidrs := list }}
{{- $ports := .ports }}
{{- range (lookup "discovery.k8s.io/v1" "EndpointSlice" "default" "").items }}
{{- if eq "kubernetes" (dig "metadata" "labels" "kubernetes.io/service-name" "" .) }}
{{- $length := ternary 128 32 (eq .addressType "IPv6") }}
{{- range .endpoints }}
{{- range .addresses }}
{{- $cidrs = append $cidrs (printf "%s/%d" . $length) }}
{{- end }}
{{- end }}
{{- range .ports }}
{{- $ports = append $ports (float64 .port) }}
{{- end }}
{{- end }}
{{- end }}
{{- $_ := set . "cidrs" ($cidrs | uniq | sortAlpha) }}
{{- $_ := set . "ports" (uniq $ports) }}
{{- end }}
