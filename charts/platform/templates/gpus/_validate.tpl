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

{{- /* Layouts are compared with the largest that a card has room for; _mig.tpl has them. Takes (list path name pool). */ -}}
{{- define "platform.validateMig" -}}
{{- $path := index . 0 }}
{{- $name := index . 1 }}
{{- $pool := index . 2 }}
{{- $known := include "platform.mig" . | fromJson }}
{{- $table := get $known.cards $pool.card }}
{{- if not $table }}
{{- include "platform.refuse" (list "mig-card" (dict "path" $path "card" ($pool.card | default "none") "known" (keys $known.cards | sortAlpha | join ", ") "name" $name)) }}
{{- end }}
{{- $largest := get $known.layouts $table }}
{{- $profiles := dict }}
{{- range $largest }}
{{- range $profile, $count := . }}
{{- $_ := set $profiles $profile (max (int $count) (get $profiles $profile | default 0 | int)) }}
{{- end }}
{{- end }}
{{- range $profile, $count := $pool.mig }}
{{- if not (hasKey $profiles $profile) }}
{{- include "platform.refuse" (list "mig-profile" (dict "path" $path "card" $pool.card "profile" $profile "known" (keys $profiles | sortAlpha | join ", "))) }}
{{- end }}
{{- end }}
{{- $asked := 0 }}
{{- $told := list }}
{{- range $profile, $count := $pool.mig }}
{{- $asked = add $asked $count }}
{{- $told = append $told (printf "%d x %s" (int $count) $profile) }}
{{- end }}
{{- $most := 0 }}
{{- $nearest := dict }}
{{- range $layout := $largest }}
{{- $kept := dict }}
{{- $sum := 0 }}
{{- range $profile, $count := $pool.mig }}
{{- $here := min (int $count) (get $layout $profile | default 0 | int) }}
{{- $_ := set $kept $profile (ternary $here nil (gt $here 0)) }}
{{- $sum = add $sum $here }}
{{- end }}
{{- if gt $sum $most }}
{{- $most = $sum }}
{{- $nearest = $kept }}
{{- end }}
{{- end }}
{{- if lt $most $asked }}
{{- include "platform.refuse" (list "mig-room" (dict "path" $path "card" $pool.card "layout" (join " + " $told) "name" $name "nearest" ($nearest | toJson))) }}
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
