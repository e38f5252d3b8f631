{{- /* OCI images with weights. The kubelet pulls them with the pull secrets of the pod. Take the values. */ -}}

{{- define "ray-service.modelImageVolumes" -}}
{{- range $name, $image := .weights.images }}
- name: model-image-{{ $name }}
  image:
    reference: {{ $image.reference | quote }}
    pullPolicy: {{ $image.pullPolicy }}
{{- end }}
{{- end }}

{{- define "ray-service.modelImageMounts" -}}
{{- range $name, $_ := .weights.images }}
- name: model-image-{{ $name }}
  mountPath: /model-images/{{ $name }}
  readOnly: true
{{- end }}
{{- end }}

{{- define "ray-service.modelImageNames" -}}
{{- $names := list }}
{{- range $name, $_ := .weights.images }}
{{- $names = append $names (printf "model-image-%s" $name) }}
{{- end }}
{{- $names | toJson }}
{{- end }}
