{{- define "gateway.validateSizes" -}}
{{- $v := . }}
{{- if eq (int .listen.port) (int .listen.metricsPort) }}
{{- include "gateway.refuse" (dict "v" $v "id" "ports-equal" "words" (dict "port" .listen.port)) }}
{{- end }}
{{- if lt .drain.seconds .timeouts.serverSeconds }}
{{- include "gateway.refuse" (dict "v" $v "id" "drain-time" "words" (dict "drain" .drain.seconds "server" .timeouts.serverSeconds)) }}
{{- end }}
{{- if le (float64 .timeouts.keyMaxAgeSeconds) (float64 .timeouts.keyRefreshSeconds) }}
{{- include "gateway.refuse" (dict "v" $v "id" "key-age" "words" (dict "age" .timeouts.keyMaxAgeSeconds "refresh" .timeouts.keyRefreshSeconds)) }}
{{- end }}
{{- $need := include "gateway.memoryNeeded" . | int64 }}
{{- if lt (include "gateway.number" .resources.limits.memory | float64) (mulf $need 1048576) }}
{{- include "gateway.refuse" (dict "v" $v "id" "body-memory" "words" (dict "body" .limits.bodyBytes "connections" .limits.connections "need" (printf "%dMi" $need) "memory" .resources.limits.memory)) }}
{{- end }}
{{- $limits := .resources.limits }}
{{- range $name, $request := .resources.requests }}
{{- $limit := get $limits $name }}
{{- if and $request (gt (include "gateway.number" $request | float64) (include "gateway.number" $limit | float64)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "resource-request" "words" (dict "resource" $name "request" $request "limit" $limit)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Memory that a pod may need, in MiB. Measured: an incomplete body takes up to 1.5 buffers, and each thread keeps up to 8:
       of HAProxy, and copies in Lua. A response larger than a buffer that its client does not read takes more than two. */ -}}
{{- define "gateway.memoryNeeded" -}}
{{- $count := addf (mulf 1.5 .limits.connections) (mulf 8 (include "gateway.threads" . | float64)) }}
{{- $buffers := mulf $count (include "gateway.bufferBytes" . | float64) }}
{{- add 64 (divf $buffers 1048576 | ceil | int64) }}
{{- end }}

{{- define "gateway.validatePods" -}}
{{- $twice := list }}
{{- $kept := deepCopy .service.annotations }}
{{- range $annotation, $_ := .service.annotations }}
{{- if hasPrefix "prometheus.io/" $annotation }}
{{- $twice = append $twice (dict "name" $annotation) }}
{{- $_ := unset $kept $annotation }}
{{- end }}
{{- end }}
{{- $args := dict "v" . }}
{{- include "gateway.refusePod" (dict "args" $args "id" "scrape-annotation" "at" (list "service" "annotations") "to" $kept "bad" $twice) }}
{{- include "gateway.validatePodSecurity" (dict "v" . "path" (list "podSecurityContext") "given" .podSecurityContext) }}
{{- $own := "the chart sets this variable" }}
{{- $env := dict "SOCKETS_FOLDER" $own "TOKEN_KEYS_FOLDER" $own }}
{{- $folders := list (include "gateway.socketsFolder" .) (include "gateway.tokenKeysFolder" .) }}
{{- $mounts := concat (list "/dev" "/proc" "/sys" "/etc/gateway" "/var/run/secrets") $folders }}
{{- $volumes := list "config" "sockets" "token-keys" }}
{{- include "gateway.validatePod" (dict "v" . "path" "" "pod" . "scraped" true "env" $env "volumes" $volumes "mounts" $mounts) }}
{{- end }}

{{- define "gateway.validateScaling" -}}
{{- $v := . }}
{{- $scaling := .autoscaling }}
{{- if gt $scaling.minReplicas $scaling.maxReplicas }}
{{- include "gateway.refuse" (dict "v" $v "id" "autoscaling-bounds" "words" (dict "min" $scaling.minReplicas "max" $scaling.maxReplicas)) }}
{{- end }}
{{- if and (eq $scaling.kind "HPA") (not $scaling.targetCpuPercent) (not $scaling.targetRequestsInFlight) }}
{{- include "gateway.refuse" (dict "v" $v "id" "autoscaling-target" "words" dict) }}
{{- end }}
{{- if eq $scaling.kind "KEDA" }}
{{- if not $scaling.keda.serverAddress }}
{{- include "gateway.refuse" (dict "v" $v "id" "keda-server" "words" dict) }}
{{- end }}
{{- if not $scaling.targetRequestsInFlight }}
{{- include "gateway.refuse" (dict "v" $v "id" "keda-target" "words" dict) }}
{{- end }}
{{- end }}
{{- end }}
