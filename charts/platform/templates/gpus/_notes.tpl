{{- define "platform.nvidiaNotes" -}}
{{- $v := include "platform.values" . | fromJson }}
{{- $nvidia := $v.nvidia }}
{{- if not $nvidia.clusterPolicy.manage }}

Point NVIDIA's GPU operator to what is made here in {{ $nvidia.namespace }}:

  helm upgrade gpu-operator nvidia/gpu-operator --namespace {{ $nvidia.namespace }} --reuse-values \
    --set mig.strategy=mixed \
    --set devicePlugin.config.name={{ include "platform.name" (list . "device-plugin") }} --set devicePlugin.config.default=default \
    --set migManager.config.name={{ include "platform.name" (list . "mig") }} \
    --set dcgmExporter.config.name={{ include "platform.name" (list . "dcgm") }}
{{- else }}

NVIDIA's GPU operator must not make a ClusterPolicy itself: its chart takes `--set clusterPolicy.deployCR=false`.
{{- end }}
{{- range $name, $pool := $nvidia.pools }}
{{- if $pool.mig }}

Cut the cards of pool {{ $name }}. Drain its nodes first: pods on them lose their cards.
  kubectl label nodes --overwrite --selector {{ include "platform.selector" $pool.nodeSelector }} nvidia.com/mig.config={{ $name }}
Each card then is:{{ range $profile, $count := $pool.mig }} {{ int $count }} x nvidia.com/mig-{{ $profile }}{{ end }}
{{- else }}

Share the cards of pool {{ $name }}, {{ int $pool.replicas }} pods to a card:
  kubectl label nodes --overwrite --selector {{ include "platform.selector" $pool.nodeSelector }} nvidia.com/device-plugin.config={{ $name }}
Pods ask for nvidia.com/gpu.shared. {{ if eq $pool.strategy "mps" }}Each gets an equal part of the memory.{{ else }}Nothing bounds what each takes of the memory: keep the sum of gpuMemoryUtilization below 1.{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Entries of a ConfigMap, and the nodes that each is for. Take the pools. */ -}}
{{- define "platform.slicedNodes" -}}
{{- $found := list }}
{{- range $name, $pool := . }}
{{- if $pool.replicas }}
{{- $found = append $found (printf "%s: %s" $name (include "platform.selector" $pool.nodeSelector)) }}
{{- end }}
{{- end }}
{{- join "; " $found }}
{{- end }}

{{- define "platform.cutNodes" -}}
{{- $found := list }}
{{- range $name, $pool := . }}
{{- if $pool.mig }}
{{- $found = append $found (printf "%s: %s" $name (include "platform.selector" $pool.nodeSelector)) }}
{{- end }}
{{- end }}
{{- join "; " $found }}
{{- end }}

{{- /* Labels as a selector of kubectl. Takes the map. */ -}}
{{- define "platform.selector" -}}
{{- $parts := list }}
{{- range $key, $value := . }}
{{- $parts = append $parts (printf "%s=%v" $key $value) }}
{{- end }}
{{- join "," $parts }}
{{- end }}
