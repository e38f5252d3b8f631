{{- define "platform.validateProbe" -}}
{{- $v := . }}
{{- with .probe }}
{{- if .enabled }}
{{- if not .image.repository }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-image" "words" dict) }}
{{- end }}
{{- if not (or .image.tag .image.digest) }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-image-tag" "words" dict) }}
{{- end }}
{{- if not .fleet }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-fleet" "words" dict) }}
{{- end }}
{{- if not .images }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-images" "words" dict) }}
{{- end }}
{{- $others := dict $v.root.Release.Namespace "this release" "default" "other pods" "kube-system" "the cluster" "kube-public" "the cluster" "kube-node-lease" "the cluster" }}
{{- with $v.metrics.adapter.namespace }}
{{- $_ := set $others . "the metrics adapter" }}
{{- end }}
{{- range $kind := list $v.metrics.services $v.metrics.gateways }}
{{- range $name, $each := $kind }}
{{- $_ := set $others $each.namespace $name }}
{{- end }}
{{- end }}
{{- with get $others .namespace }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-namespace" "words" (dict "namespace" $v.probe.namespace "what" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
