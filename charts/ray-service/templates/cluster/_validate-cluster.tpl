{{- /* Takes (list root values). */ -}}
{{- define "ray-service.validateCluster" -}}
{{- $v := index . 1 }}
{{- if eq $v.auth.mode "disabled" }}
{{- if not $v.auth.reason }}
{{- include "ray-service.refuse" (list $v "auth-reason" dict) }}
{{- end }}
{{- else if semverCompare "<2.52.0" $v.ray.version }}
{{- include "ray-service.refuse" (list $v "auth-ray" (dict "ray" $v.ray.version)) }}
{{- end }}
{{- if $v.suspend }}
{{- include "ray-service.refuse" (list $v "suspend-unknown" (dict "kuberay" $v.kuberay.version)) }}
{{- end }}
{{- if eq $v.upgrade.strategy "NewClusterWithIncrementalUpgrade" }}
{{- include "ray-service.validateIncremental" . }}
{{- end }}
{{- if $v.gcsFaultTolerance.enabled }}
{{- if not $v.gcsFaultTolerance.redisAddress }}
{{- include "ray-service.refuse" (list $v "redis-address" dict) }}
{{- end }}
{{- end }}
{{- range list "ray.io/ft-enabled" "ray.io/external-storage-namespace" }}
{{- if hasKey $v.annotations . }}
{{- include "ray-service.refuse" (list $v "annotation-reserved" (dict "annotation" .)) }}
{{- end }}
{{- end }}
{{- include "ray-service.validateTimeout" $v }}
{{- if regexMatch "^/(cache|tmp|dev|etc)(/|$)" $v.weights.mountPath }}
{{- include "ray-service.refuse" (list $v "mount-path" (dict "path" $v.weights.mountPath)) }}
{{- end }}
{{- if and (not $v.weights.offline) (not $v.weights.onlineReason) }}
{{- include "ray-service.refuse" (list $v "weights-online-reason" dict) }}
{{- end }}
{{- end }}

{{- define "ray-service.validateIncremental" -}}
{{- $v := index . 1 }}
{{- $steps := $v.upgrade.incremental }}
{{- include "ray-service.refuse" (list $v "incremental-unknown" (dict "kuberay" $v.kuberay.version)) }}
{{- if not $v.autoscaler.enabled }}
{{- include "ray-service.refuse" (list $v "incremental-autoscaler" dict) }}
{{- end }}
{{- if not $steps.gatewayClassName }}
{{- include "ray-service.refuse" (list $v "incremental-gateway" dict) }}
{{- end }}
{{- if gt $steps.stepSizePercent $steps.maxSurgePercent }}
{{- include "ray-service.refuse" (list $v "incremental-step" (dict "step" $steps.stepSizePercent "surge" $steps.maxSurgePercent)) }}
{{- end }}
{{- if and (or $v.aliases $v.test.enabled) (not $steps.gatewayService) }}
{{- include "ray-service.refuse" (list $v "incremental-service" (dict "name" (include "ray-service.name" (index . 0)))) }}
{{- end }}
{{- end }}

{{- /* Whole seconds, or a duration as Go spells it, of more than nothing; empty is none. */ -}}
{{- define "ray-service.validateTimeout" -}}
{{- $timeout := get .annotations "ray.io/initializing-timeout" | toString }}
{{- $duration := regexMatch "^\\+?([0-9]+|([0-9]+(\\.[0-9]*)?(ns|us|ms|s|m|h))+)$" $timeout }}
{{- if and $timeout (not (and $duration (regexMatch "[1-9]" $timeout))) }}
{{- include "ray-service.refuse" (list . "initializing-timeout" (dict "timeout" $timeout)) }}
{{- end }}
{{- end }}
