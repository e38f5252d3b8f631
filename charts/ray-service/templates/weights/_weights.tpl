{{- /* Models to download, by path, as a JSON list of {from, source, revision, path, exclude}; `from` is `hub` or
       `bucket`. The Job's name depends on its order. Takes the values. */ -}}
{{- define "ray-service.downloads" -}}
{{- $v := . }}
{{- $found := dict }}
{{- range $v.serve.applications }}
{{- range .models }}
{{- if hasKey . "tokenizer" }}
{{- $weights := list "*.safetensors" "*.bin" "*.gguf" }}
{{- include "ray-service.addDownload" (dict "v" $v "found" $found "source" .tokenizer "revision" .tokenizerRevision "exclude" $weights) }}
{{- end }}
{{- end }}
{{- end }}
{{- /* Models last: a tokenizer in the repository of a model needs no download of its own. */}}
{{- range $v.serve.applications }}
{{- range .models }}
{{- include "ray-service.addDownload" (dict "v" $v "found" $found "source" .source "revision" .revision "exclude" list) }}
{{- end }}
{{- end }}
{{- range $v.serve.applications }}
{{- range .models }}
{{- range .lora.adapters }}
{{- include "ray-service.addDownload" (dict "v" $v "found" $found "source" .source "revision" .revision "exclude" list) }}
{{- end }}
{{- end }}
{{- end }}
{{- range .serve.customApplications }}
{{- range $source, $revision := .hubModels }}
{{- include "ray-service.addDownload" (dict "v" $v "found" $found "source" $source "revision" $revision "exclude" list) }}
{{- end }}
{{- end }}
{{- $models := list }}
{{- range $found }}
{{- $models = append $models . }}
{{- end }}
{{- $models | toJson }}
{{- end }}

{{- define "ray-service.addDownload" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.addDownload" "given" . "names" (list "v" "found" "source" "revision" "exclude")) -}}
{{- with include "ray-service.downloadedFrom" (dict "source" .source "revision" .revision) }}
{{- $path := include "ray-service.downloadPath" (pick $ "v" "source" "revision") }}
{{- $_ := set $.found $path (dict "from" . "source" $.source "revision" $.revision "path" $path "exclude" $.exclude) }}
{{- end }}
{{- end }}

{{- define "ray-service.weightsMarker" -}}
{{ .Values.weights.mountPath }}/.{{ include "ray-service.name" . }}-complete
{{- end }}

{{- /* Init container in which the workers of a first install wait for the Job. The name of the marker file does not
       depend on the models: a new model must not change a pod template, because KubeRay would start a second
       cluster. */ -}}
{{- define "ray-service.waitForWeights" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.waitForWeights" "given" . "names" (list "root" "v" "name" "group")) -}}
{{- $v := .v }}
- name: wait-for-weights
  image: {{ include "ray-service.groupImage" (dict "image" $v.image "override" .group.image) | quote }}
  imagePullPolicy: {{ $v.image.pullPolicy }}
  command: [sh, -c, 'until test -e "$0"; do sleep 5; done', {{ include "ray-service.weightsMarker" .root }}]
  securityContext:
    {{- include "ray-service.containerSecurity" .root | nindent 4 }}
  resources:
    {{- include "ray-service.resources" (dict "resources" (dict "limits" (dict "cpu" "50m" "memory" "64Mi")) "devices" dict) | trim | nindent 4 }}
  volumeMounts:
    - name: weights
      mountPath: {{ $v.weights.mountPath }}
      readOnly: true
{{- end }}

{{- /* Access mode of the claim. Kubernetes refuses another one for an existing claim, so its mode stays. Takes a dict: root,
       v. */ -}}
{{- define "ray-service.accessMode" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.accessMode" "given" . "names" (list "root" "v")) -}}
{{- $v := .v }}
{{- $pods := 0.0 }}
{{- range $v.workerGroups }}
{{- $pods = addf $pods (include "ray-service.maxPods" (dict "v" $v "group" .) | float64) }}
{{- end }}
{{- $single := and (le $pods 1.0) (eq $v.upgrade.strategy "None") }}
{{- $live := lookup "v1" "PersistentVolumeClaim" .root.Release.Namespace (include "ray-service.claimName" .root) }}
{{- $existing := dig "spec" "accessModes" list $live | first }}
{{- $v.weights.claim.accessMode | default $existing | default (ternary "ReadWriteOnce" "ReadWriteMany" $single) }}
{{- end }}
