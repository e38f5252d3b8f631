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
  {{- end }}
  {{- include "ray-service.spreadConstraints" (dict "pod" .pod "selector" $selector) | trim | nindent 2 }}
{{- end }}
{{- end }}
