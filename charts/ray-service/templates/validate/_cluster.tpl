{{- define "ray-service.validateCluster" -}}
{{- $v := . }}
{{- if eq $v.auth.mode "disabled" }}
{{- if not $v.auth.reason }}
{{- include "ray-service.refuse" (dict "v" $v "id" "auth-reason" "words" dict) }}
{{- end }}
{{- else if semverCompare "<2.52.0" $v.ray.version }}
{{- include "ray-service.refuse" (dict "v" $v "id" "auth-ray" "words" (dict "ray" $v.ray.version)) }}
{{- end }}
{{- if $v.suspend }}
{{- include "ray-service.refuse" (dict "v" $v "id" "suspend-unknown" "words" (dict "kuberay" $v.kuberay.version)) }}
{{- end }}
{{- with get $v.labels "kueue.x-k8s.io/queue-name" }}
{{- if $v.autoscaler.enabled }}
{{- include "ray-service.refuse" (dict "v" $v "id" "queue-autoscaler" "words" (dict "queue" .)) }}
{{- end }}
{{- if ne $v.upgrade.strategy "None" }}
{{- include "ray-service.refuse" (dict "v" $v "id" "queue-upgrade" "words" (dict "queue" . "strategy" $v.upgrade.strategy)) }}
{{- end }}
{{- end }}
{{- if eq $v.upgrade.strategy "NewClusterWithIncrementalUpgrade" }}
{{- include "ray-service.validateIncremental" . }}
{{- end }}
{{- if $v.gcsFaultTolerance.enabled }}
{{- if not $v.gcsFaultTolerance.redisAddress }}
{{- include "ray-service.refuse" (dict "v" $v "id" "redis-address" "words" dict) }}
{{- end }}
{{- end }}
{{- $bad := list }}
{{- range list "ray.io/ft-enabled" "ray.io/external-storage-namespace" }}
{{- if hasKey $v.annotations . }}
{{- $bad = append $bad (dict "name" .) }}
{{- end }}
{{- end }}
{{- include "ray-service.refuseEntries" (dict "v" $v "id" "annotation-reserved" "bad" $bad "given" $v.annotations "words" dict) }}
{{- include "ray-service.validateTimeout" $v }}
{{- if regexMatch "^/(cache|tmp|dev|etc|model-images)(/|$)" $v.weights.mountPath }}
{{- include "ray-service.refuse" (dict "v" $v "id" "mount-path" "words" (dict "path" $v.weights.mountPath)) }}
{{- end }}
{{- if and (not $v.weights.offline) (not $v.weights.onlineReason) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "weights-online-reason" "words" dict) }}
{{- end }}
{{- end }}

{{- define "ray-service.validateIncremental" -}}
{{- $v := . }}
{{- $steps := $v.upgrade.incremental }}
{{- include "ray-service.refuse" (dict "v" $v "id" "incremental-unknown" "words" (dict "kuberay" $v.kuberay.version)) }}
{{- if not $v.autoscaler.enabled }}
{{- include "ray-service.refuse" (dict "v" $v "id" "incremental-autoscaler" "words" dict) }}
{{- end }}
{{- if not $steps.gatewayClassName }}
{{- include "ray-service.refuse" (dict "v" $v "id" "incremental-gateway" "words" dict) }}
{{- end }}
{{- if gt $steps.stepSizePercent $steps.maxSurgePercent }}
{{- include "ray-service.refuse" (dict "v" $v "id" "incremental-step" "words" (dict "step" $steps.stepSizePercent "surge" $steps.maxSurgePercent)) }}
{{- end }}
{{- if and (or $v.aliases $v.test.enabled) (not $steps.gatewayService) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "incremental-service" "words" (dict "name" (include "ray-service.name" .root))) }}
{{- end }}
{{- end }}

{{- /* A positive number of whole seconds, or a positive duration of Go; no annotation when empty. */ -}}
{{- define "ray-service.validateTimeout" -}}
{{- $timeout := get .annotations "ray.io/initializing-timeout" | toString }}
{{- $duration := regexMatch "^\\+?([0-9]+|([0-9]+(\\.[0-9]*)?(ns|us|ms|s|m|h))+)$" $timeout }}
{{- if and $timeout (not (and $duration (regexMatch "[1-9]" $timeout))) }}
{{- include "ray-service.refuse" (dict "v" . "id" "initializing-timeout" "words" (dict "timeout" $timeout)) }}
{{- end }}
{{- end }}
