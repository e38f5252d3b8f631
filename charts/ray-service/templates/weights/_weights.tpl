{{- /* Hub models with their paths, one entry each, as JSON. Takes the values. */ -}}
{{- define "ray-service.hubModels" -}}
{{- $v := . }}
{{- $found := dict }}
{{- range $v.serve.applications }}
{{- range .models }}
{{- if include "ray-service.isHubId" .source }}
{{- $path := include "ray-service.modelSource" (list $v .) }}
{{- $_ := set $found $path (dict "source" .source "revision" .revision "path" $path) }}
{{- end }}
{{- end }}
{{- end }}
{{- range .serve.customApplications }}
{{- range $source, $revision := .hubModels }}
{{- $path := include "ray-service.hubPath" (list $v $source $revision) }}
{{- $_ := set $found $path (dict "source" $source "revision" $revision "path" $path) }}
{{- end }}
{{- end }}
{{- /* By path: `values` would list them in another order each time, and the Job's name hangs on it. */}}
{{- $models := list }}
{{- range $found }}
{{- $models = append $models . }}
{{- end }}
{{- $models | toJson }}
{{- end }}

{{- /* Where a hub model lies: another revision is another path. Takes (list values source revision). */ -}}
{{- define "ray-service.hubPath" -}}
{{ (index . 0).weights.mountPath }}/{{ index . 1 }}/{{ index . 2 | default "main" }}
{{- end }}

{{- define "ray-service.weightsMarker" -}}
{{ .Values.weights.mountPath }}/.{{ include "ray-service.name" . }}-complete
{{- end }}

{{- /* Workers of a first install wait for the Job. The file's name says nothing of the models: a model that is added
       must not change a pod template, or it would build a second cluster. Takes (list root values name group). */ -}}
{{- define "ray-service.waitForWeights" -}}
{{- $v := index . 1 }}
- name: wait-for-weights
  image: {{ include "ray-service.groupImage" (list $v.image (index . 3).image) }}
  imagePullPolicy: {{ $v.image.pullPolicy }}
  command: [sh, -c, 'until test -e "$0"; do sleep 5; done', {{ include "ray-service.weightsMarker" (index . 0) }}]
  securityContext:
    {{- include "ray-service.containerSecurity" (index . 0) | nindent 4 }}
  resources:
    {{- include "ray-service.resources" (list (dict "cpu" "50m" "memory" "64Mi") dict) | trim | nindent 4 }}
  volumeMounts:
    - name: weights
      mountPath: {{ $v.weights.mountPath }}
      readOnly: true
{{- end }}
