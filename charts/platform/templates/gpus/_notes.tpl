{{- define "platform.nvidiaNotes" -}}
{{- $v := include "platform.values" . | fromJson }}
{{- $nvidia := $v.nvidia }}
{{- if not $nvidia.clusterPolicy.manage }}

Point NVIDIA's GPU operator to the ConfigMaps of this release in {{ $nvidia.namespace }}:

  {{ include "platform.upgrade" (dict "release" "gpu-operator" "chart" "nvidia/gpu-operator" "namespace" $nvidia.namespace) }} \
    --set mig.strategy=mixed --set cdi.enabled=true \
    --set devicePlugin.config.name={{ include "platform.name" (dict "root" . "part" "device-plugin") }} --set devicePlugin.config.default=default \
    --set migManager.config.name={{ include "platform.name" (dict "root" . "part" "mig") }} \
    --set dcgmExporter.config.name={{ include "platform.name" (dict "root" . "part" "dcgm") }}

So that NVIDIA_VISIBLE_DEVICES of an image gives it no GPUs, add to toolkit.env of its values (operator 25.10 or newer; not with
DEVICE_LIST_STRATEGY=envvar in devicePlugin.env):

  - {name: ACCEPT_NVIDIA_VISIBLE_DEVICES_ENVVAR_WHEN_UNPRIVILEGED, value: "false"}
{{- else }}

NVIDIA's chart must not create a ClusterPolicy: install it with `--set clusterPolicy.deployCR=false`.
{{- if not $nvidia.clusterPolicy.toolkit }}

The operator installs no toolkit. So that NVIDIA_VISIBLE_DEVICES of an image gives it no GPUs, set
accept-nvidia-visible-devices-envvar-when-unprivileged = false in /etc/nvidia-container-runtime/config.toml of the nodes.
{{- end }}
{{- end }}
{{- range $name, $pool := $nvidia.pools }}
{{- if $pool.mig }}

Partition the GPUs of pool {{ $name }}. Drain its nodes first, because pods on them lose their GPUs:
  kubectl label nodes --overwrite --selector {{ include "platform.selector" $pool.nodeSelector }} nvidia.com/mig.config={{ $name }}
Each GPU then provides:{{ range $profile, $count := $pool.mig }} {{ int $count }} x nvidia.com/mig-{{ $profile }}{{ end }}
{{- else }}

Share the GPUs of pool {{ $name }}, {{ int $pool.replicas }} pods per GPU:
  kubectl label nodes --overwrite --selector {{ include "platform.selector" $pool.nodeSelector }} nvidia.com/device-plugin.config={{ $name }}
Pods request nvidia.com/gpu.shared. {{ if eq $pool.strategy "mps" }}Each gets an equal part of the memory.{{ else }}Their memory is not limited: keep the sum of gpuMemoryUtilization below 1.{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Entries of a ConfigMap with the node selector of each, as text. Take the pools. */ -}}
{{- define "platform.slicedNodes" -}}
{{- $found := list }}
{{- range $name, $pool := . }}
{{- if $pool.replicas }}
{{- $found = append $found (printf "%s: %s" $name (include "platform.selector" $pool.nodeSelector)) }}
{{- end }}
{{- end }}
{{- join "; " $found }}
{{- end }}

{{- define "platform.migNodes" -}}
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
