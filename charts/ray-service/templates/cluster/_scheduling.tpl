{{- /* Eviction and spreading of pods. */ -}}

{{- /* Annotations for the Cluster Autoscaler and Karpenter. Constant, because they are in pod templates. */ -}}
{{- define "ray-service.evictionAnnotations" -}}
cluster-autoscaler.kubernetes.io/safe-to-evict: "false"
karpenter.sh/do-not-disrupt: "true"
{{- end }}

{{- /* Takes (list root name group). `ray.io/cluster` is KubeRay's label: pods of another cluster do not count. */ -}}
{{- define "ray-service.spread" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- with (index . 2).spread }}
topologySpreadConstraints:
  {{- range $place, $spread := . }}
  - topologyKey: {{ $place | quote }}
    maxSkew: {{ int $spread.maxSkew }}
    whenUnsatisfiable: {{ $spread.unsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "ray-service.selector" (list $root "worker" $name) | nindent 8 }}
    matchLabelKeys: [ray.io/cluster]
  {{- end }}
{{- end }}
{{- end }}
