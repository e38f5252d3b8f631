{{- /* Models to download, by path, as a JSON list of {source, revision, path, exclude}. The Job's name depends on
       its order. Takes the values. */ -}}
{{- define "ray-service.hubModels" -}}
{{- $v := . }}
{{- $found := dict }}
{{- range $v.serve.applications }}
{{- range .models }}
{{- if hasKey . "tokenizer" }}
{{- $weights := list "*.safetensors" "*.bin" "*.gguf" }}
{{- include "ray-service.addHubModel" (list $v $found .tokenizer .tokenizerRevision $weights) }}
{{- end }}
{{- end }}
{{- end }}
{{- /* Models last: a tokenizer in the repository of a model needs no download of its own. */}}
{{- range $v.serve.applications }}
{{- range .models }}
{{- include "ray-service.addHubModel" (list $v $found .source .revision list) }}
{{- end }}
{{- end }}
{{- range .serve.customApplications }}
{{- range $source, $revision := .hubModels }}
{{- include "ray-service.addHubModel" (list $v $found $source $revision list) }}
{{- end }}
{{- end }}
{{- $models := list }}
{{- range $found }}
{{- $models = append $models . }}
{{- end }}
{{- $models | toJson }}
{{- end }}

{{- /* Takes (list values found source revision exclude). */ -}}
{{- define "ray-service.addHubModel" -}}
{{- $source := index . 2 }}
{{- if include "ray-service.isHubId" $source }}
{{- $path := include "ray-service.hubPath" (list (index . 0) $source (index . 3)) }}
{{- $_ := set (index . 1) $path (dict "source" $source "revision" (index . 3) "path" $path "exclude" (index . 4)) }}
{{- end }}
{{- end }}

{{- /* Path of a hub model; each revision has its own. Takes (list values source revision). */ -}}
{{- define "ray-service.hubPath" -}}
{{ (index . 0).weights.mountPath }}/{{ index . 1 }}/{{ index . 2 | default "main" }}
{{- end }}

{{- define "ray-service.weightsMarker" -}}
{{ .Values.weights.mountPath }}/.{{ include "ray-service.name" . }}-complete
{{- end }}

{{- /* Init container in which the workers of a first install wait for the Job. The name of the marker file does not
       depend on the models: a new model must not change a pod template, because KubeRay would start a second
       cluster. Takes (list root values name group). */ -}}
{{- define "ray-service.waitForWeights" -}}
{{- $v := index . 1 }}
- name: wait-for-weights
  image: {{ include "ray-service.groupImage" (list $v.image (index . 3).image) }}
  imagePullPolicy: {{ $v.image.pullPolicy }}
  command: [sh, -c, 'until test -e "$0"; do sleep 5; done', {{ include "ray-service.weightsMarker" (index . 0) }}]
  securityContext:
    {{- include "ray-service.containerSecurity" (index . 0) | nindent 4 }}
  resources:
    {{- include "ray-service.resources" (list (dict "limits" (dict "cpu" "50m" "memory" "64Mi")) dict) | trim | nindent 4 }}
  volumeMounts:
    - name: weights
      mountPath: {{ $v.weights.mountPath }}
      readOnly: true
{{- end }}
