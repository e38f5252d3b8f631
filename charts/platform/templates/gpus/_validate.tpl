{{- /* Takes the values. */ -}}
{{- define "platform.validateGpus" -}}
{{- if .nvidia.enabled }}
{{- include "platform.validateNvidiaPools" .nvidia }}
{{- end }}
{{- if .amd.enabled }}
{{- include "platform.validatePartitions" .amd }}
{{- end }}
{{- if .intel.enabled }}
{{- include "platform.validateIntelPools" .intel }}
{{- end }}
{{- end }}

{{- define "platform.validateNvidiaPools" -}}
{{- range $name, $pool := .pools }}
{{- $path := printf "nvidia.pools.%s" $name }}
{{- if has $name (list "default" "all-disabled") }}
{{- include "platform.refuse" (list "pool-name" (dict "name" $name)) }}
{{- end }}
{{- if and $pool.mig $pool.replicas }}
{{- include "platform.refuse" (list "pool-both" (dict "path" $path "replicas" (int $pool.replicas))) }}
{{- end }}
{{- if and (not $pool.mig) (lt (int $pool.replicas) 2) }}
{{- include "platform.refuse" (list "pool-neither" (dict "path" $path "name" $name)) }}
{{- end }}
{{- if not $pool.nodeSelector }}
{{- include "platform.refuse" (list "pool-nodes" (dict "path" $path "name" $name)) }}
{{- end }}
{{- if $pool.mig }}
{{- include "platform.validateMig" (list $path $name $pool) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "platform.validatePartitions" -}}
{{- range $name, $cut := .partitions }}
{{- if not $cut.nodeSelector }}
{{- include "platform.refuse" (list "pool-nodes" (dict "path" (printf "amd.partitions.%s" $name) "name" $name)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "platform.validateIntelPools" -}}
{{- $seen := dict }}
{{- range $name, $pool := .pools }}
{{- $nodes := $pool.nodeSelector | toJson }}
{{- if hasKey $seen $nodes }}
{{- include "platform.refuse" (list "plugin-nodes" (dict "path" (printf "intel.pools.%s" $name) "first" (get $seen $nodes) "name" $name)) }}
{{- end }}
{{- $_ := set $seen $nodes $name }}
{{- end }}
{{- end }}
