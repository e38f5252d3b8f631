{{- /* Eviction and spreading of pods. */ -}}

{{- /* Annotations for the Cluster Autoscaler and Karpenter. Constant, because they are in pod templates. */ -}}
{{- define "ray-service.evictionAnnotations" -}}
cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
karpenter.sh/do-not-disrupt: "true"
{{- end }}

{{- /* `ray.io/cluster` is KubeRay's label: pods of another cluster do not count. Takes a dict: root, role, name (of a worker
       group, or empty), pod. */ -}}
{{- define "ray-service.spread" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.spread" "given" . "names" (list "root" "role" "name" "pod")) -}}
{{- $selector := include "ray-service.selector" (dict "root" .root "role" .role "group" .name) }}
{{- $spread := get .pod "spread" | default dict }}
{{- if or $spread .pod.topologySpreadConstraints }}
topologySpreadConstraints:
  {{- range $place, $spread := $spread }}
  - topologyKey: {{ $place | quote }}
    maxSkew: {{ int $spread.maxSkew }}
    whenUnsatisfiable: {{ $spread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- $selector | nindent 8 }}
    matchLabelKeys: [ray.io/cluster]
    # Without this, a drained node counts as one without pods, and the pods that were on it stay Pending.
    nodeTaintsPolicy: Honor
  {{- end }}
  {{- include "ray-service.spreadConstraints" (dict "pod" .pod "selector" $selector) | trim | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Pods of a worker group that are ready when it is smallest: one for each replica, because a worker that only holds
       ranks of a replica on another pod is never ready. Takes a dict: v, name, group. */ -}}
{{- define "ray-service.fewestReadyPods" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.fewestReadyPods" "given" . "names" (list "v" "name" "group")) -}}
{{- $name := .name }}
{{- $group := .group }}
{{- $span := int $group.numOfHosts }}
{{- range .v.serve.applications }}
{{- range .models }}
{{- if and (eq .accelerator.kind "gpu") $group.gpu.count (or (not .workerGroups) (has $name .workerGroups)) }}
{{- $ranks := mul .engine.tensorParallelSize .engine.pipelineParallelSize (get .engine "dataParallelSize" | default 1) }}
{{- $span = max $span (divf $ranks (max 1 (len .workerGroups)) $group.gpu.count | ceil | int) }}
{{- end }}
{{- end }}
{{- end }}
{{- div (mul $group.minReplicas $group.numOfHosts) $span }}
{{- end }}
