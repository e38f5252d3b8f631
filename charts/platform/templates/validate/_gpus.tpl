{{- define "platform.validateGpus" -}}
{{- if .nvidia.enabled }}
{{- include "platform.validateNvidiaPools" . }}
{{- end }}
{{- if .amd.enabled }}
{{- include "platform.validatePartitions" . }}
{{- end }}
{{- if .intel.enabled }}
{{- include "platform.validateIntelPools" . }}
{{- end }}
{{- end }}

{{- define "platform.validateNvidiaPools" -}}
{{- $v := . }}
{{- range $name, $pool := .nvidia.pools }}
{{- $path := list "nvidia" "pools" $name }}
{{- if has $name (list "default" "all-disabled") }}
{{- include "platform.refuse" (dict "v" $v "id" "pool-name" "words" (dict "name" $name)) }}
{{- end }}
{{- if and $pool.mig $pool.replicas }}
{{- include "platform.refuse" (dict "v" $v "id" "pool-mig-and-replicas" "words" (dict "path" $path "replicas" (int $pool.replicas))) }}
{{- end }}
{{- if and (not $pool.mig) (lt (int $pool.replicas) 2) }}
{{- include "platform.refuse" (dict "v" $v "id" "pool-sharing-missing" "words" (dict "path" $path "name" $name)) }}
{{- end }}
{{- if not $pool.nodeSelector }}
{{- include "platform.refuse" (dict "v" $v "id" "pool-nodes" "words" (dict "path" $path "name" $name)) }}
{{- end }}
{{- if $pool.mig }}
{{- include "platform.validateMig" (dict "v" $v "path" $path "name" $name "pool" $pool) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "platform.validatePartitions" -}}
{{- $v := . }}
{{- range $name, $cut := .amd.partitions }}
{{- if not $cut.nodeSelector }}
{{- include "platform.refuse" (dict "v" $v "id" "pool-nodes" "words" (dict "path" (list "amd" "partitions" $name) "name" $name)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "platform.validateIntelPools" -}}
{{- $v := . }}
{{- $seen := dict }}
{{- range $name, $pool := .intel.pools }}
{{- $nodes := $pool.nodeSelector | toJson }}
{{- if hasKey $seen $nodes }}
{{- include "platform.refuse" (dict "v" $v "id" "plugin-nodes" "words" (dict "path" (list "intel" "pools" $name) "first" (get $seen $nodes) "name" $name)) }}
{{- end }}
{{- $_ := set $seen $nodes $name }}
{{- end }}
{{- end }}
