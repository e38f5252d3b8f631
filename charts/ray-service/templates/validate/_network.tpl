{{- define "ray-service.validateNetwork" -}}
{{- $v := . }}
{{- $policy := .networkPolicy }}
{{- if not $policy.enabled }}
{{- if not $policy.reason }}
{{- include "ray-service.refuse" (dict "v" $v "id" "network-policy-reason" "words" dict) }}
{{- end }}
{{- else }}
{{- if and .autoscaler.enabled (not $policy.apiServer.cidrs) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "api-server-cidrs" "words" dict) }}
{{- end }}
{{- if not (or $policy.dns.peer.namespace $policy.dns.cidrs) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "dns-egress" "words" dict) }}
{{- end }}
{{- if and .gcsFaultTolerance.enabled (not (or (include "ray-service.peer" $policy.redis.peer) $policy.redis.cidrs)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "redis-egress" "words" dict) }}
{{- end }}
{{- $namespaces := list }}
{{- range $policy.allowedGateways }}
{{- if include "ray-service.peer" . }}
{{- $namespaces = append $namespaces (.namespace | default $v.root.Release.Namespace) }}
{{- end }}
{{- end }}
{{- if eq .upgrade.strategy "NewClusterWithIncrementalUpgrade" }}
{{- if and .test.enabled (not $namespaces) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "incremental-test" "words" dict) }}
{{- end }}
{{- else }}
{{- range $name, $alias := .aliases }}
{{- $namespace := $alias.namespace | default $v.root.Release.Namespace }}
{{- if not (has $namespace $namespaces) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "alias-clients" "words" (dict "alias" $name "namespace" $namespace)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
