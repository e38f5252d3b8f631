{{- /* Settings that differ by GPU vendor. They take a worker group. */ -}}

{{- define "ray-service.vendor" -}}
{{- $vendors := dict
      "nvidia" (dict "resource" "nvidia.com/gpu" "product" "nvidia.com/gpu.product")
      "amd" (dict "resource" "amd.com/gpu" "product" "amd.com/gpu.product-name")
      "intel" (dict "resource" "gpu.intel.com/xe" "product" "gpu.intel.com/product") }}
{{- $vendor := get $vendors .gpu.vendor }}
{{- dict "resource" (.gpu.resource | default $vendor.resource) "taint" $vendor.resource "product" $vendor.product | toJson }}
{{- end }}

{{- define "ray-service.devices" -}}
{{- $vendor := include "ray-service.vendor" . | fromJson }}
{{- $devices := dict }}
{{- if .gpu.count }}
{{- $_ := set $devices $vendor.resource (int .gpu.count | toString) }}
{{- end }}
{{- if .rdma.resource }}
{{- $_ := set $devices .rdma.resource (int .rdma.count | toString) }}
{{- end }}
{{- $devices | toJson }}
{{- end }}

{{- /* Environment that depends on the group: network, drain time, image. */ -}}
{{- define "ray-service.groupEnv" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.groupEnv" "given" . "names" (list "v" "group")) -}}
{{- $group := .group }}
{{- $env := dict
      "NCCL_SOCKET_IFNAME" $group.networkInterface
      "GLOO_SOCKET_IFNAME" $group.networkInterface
      "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S" (sub $group.terminationGracePeriodSeconds 10 | toString) }}
{{- if not $group.rdma.resource }}
{{- $_ := set $env "NCCL_IB_DISABLE" "1" }}
{{- else if $group.rdma.hca }}
{{- $_ := set $env "NCCL_IB_HCA" $group.rdma.hca }}
{{- end }}
{{- /* Without it a worker ends if the Python of its image has another patch version than that of the head. */}}
{{- if or $group.image.repository $group.image.tag $group.image.digest }}
{{- $_ := set $env "RAY_DEFAULT_PYTHON_VERSION_MATCH_LEVEL" "minor" }}
{{- end }}
{{- $env = merge $env (include "ray-service.imageEnv" (dict "image" .v.image "override" $group.image) | fromJson) }}
{{- $env | toJson }}
{{- end }}

{{- /* Node labels and tolerations: of the GPU vendor, of spot nodes, and of the values. */ -}}
{{- define "ray-service.nodes" -}}
{{- $vendor := include "ray-service.vendor" . | fromJson }}
{{- $spot := get (dict
      "karpenter" (dict "key" "karpenter.sh/capacity-type" "value" "spot")
      "eks" (dict "key" "eks.amazonaws.com/capacityType" "value" "SPOT")
      "gke" (dict "key" "cloud.google.com/gke-spot" "value" "true")
      "aks" (dict "key" "kubernetes.azure.com/scalesetpriority" "value" "spot")) .spot }}
{{- $labels := dict }}
{{- if and .gpu.count .gpu.product }}
{{- $_ := set $labels $vendor.product .gpu.product }}
{{- end }}
{{- with $spot }}
{{- $_ := set $labels .key .value }}
{{- end }}
{{- $labels = mergeOverwrite $labels .nodeSelector }}
{{- $tolerations := list }}
{{- if .gpu.count }}
{{- range list $vendor.taint $vendor.resource | uniq }}
{{- $tolerations = append $tolerations (dict "key" . "operator" "Exists" "effect" "NoSchedule") }}
{{- end }}
{{- end }}
{{- with $spot }}
{{- $tolerations = append $tolerations (dict "key" .key "operator" "Equal" "value" .value "effect" "NoSchedule") }}
{{- end }}
{{- with $labels }}
nodeSelector:
  {{- include "ray-service.textMap" . | nindent 2 }}
{{- end }}
{{- with concat $tolerations .tolerations }}
tolerations:
  {{- include "ray-service.tolerations" . | nindent 2 }}
{{- end }}
{{- end }}
