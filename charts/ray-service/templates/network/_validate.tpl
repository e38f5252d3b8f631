{{- /* Takes (list root values). */ -}}
{{- define "ray-service.validateNetwork" -}}
{{- $root := index . 0 }}
{{- with index . 1 }}
{{- $v := . }}
{{- $policy := .networkPolicy }}
{{- if not $policy.enabled }}
{{- if not $policy.reason }}
{{- include "ray-service.refuse" (list . "network-policy-reason" dict) }}
{{- end }}
{{- else }}
{{- if and .autoscaler.enabled (not $policy.apiServer.cidrs) }}
{{- include "ray-service.refuse" (list . "api-server-cidrs" dict) }}
{{- end }}
{{- if not (or $policy.dns.peer.namespace $policy.dns.cidrs) }}
{{- include "ray-service.refuse" (list . "dns-egress" dict) }}
{{- end }}
{{- if and .gcsFaultTolerance.enabled (not (or $policy.redis.peer.namespace $policy.redis.cidrs)) }}
{{- include "ray-service.refuse" (list . "redis-egress" dict) }}
{{- end }}
{{- $callers := list }}
{{- range $policy.allowedGateways }}
{{- $callers = append $callers .namespace }}
{{- end }}
{{- if eq .upgrade.strategy "NewClusterWithIncrementalUpgrade" }}
{{- if and .test.enabled (not (compact $callers)) }}
{{- include "ray-service.refuse" (list . "incremental-test" dict) }}
{{- end }}
{{- else }}
{{- range $name, $alias := .aliases }}
{{- $namespace := $alias.namespace | default $root.Release.Namespace }}
{{- if not (has $namespace $callers) }}
{{- include "ray-service.refuse" (list $v "alias-callers" (dict "alias" $name "namespace" $namespace)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
