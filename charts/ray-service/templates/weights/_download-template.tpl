{{- /* Pod template of the Job, before the patch of the values. */ -}}
{{- define "ray-service.downloadTemplate" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.downloadTemplate" "given" . "names" (list "root" "v" "program")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $download := $v.weights.download }}
{{- $program := .program }}
{{- $hasBucket := include "ray-service.downloadsFrom" (dict "v" $v "from" "bucket") }}
metadata:
  labels:
    {{- include "ray-service.podLabels" (dict "root" $root "role" "download") | nindent 4 }}
    {{- with $download.podLabels }}
    {{- include "ray-service.textMap" . | nindent 4 }}
    {{- end }}
  {{- with $download.podAnnotations }}
  annotations:
    {{- include "ray-service.textMap" . | nindent 4 }}
  {{- end }}
spec:
  restartPolicy: OnFailure
  automountServiceAccountToken: false
  enableServiceLinks: false
  serviceAccountName: {{ $download.serviceAccount | default (include "ray-service.serviceAccountName" $root) | quote }}
  {{- with include "ray-service.pullSecrets" $root }}
  {{- . | nindent 2 }}
  {{- end }}
  securityContext:
    {{- include "ray-service.securityContext" $root | nindent 4 }}
  {{- with $download.nodeSelector }}
  nodeSelector:
    {{- include "ray-service.textMap" . | nindent 4 }}
  {{- end }}
  {{- with $download.tolerations }}
  tolerations:
    {{- include "ray-service.tolerations" . | nindent 4 }}
  {{- end }}
  {{- with $download.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "ray-service.spread" (dict "root" $root "role" "download" "name" "" "pod" $download) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "ray-service.downloads" $v | fromJsonArray }}
  initContainers:
    {{- range $i, $model := . }}
    - name: download-{{ $i }}
      {{- include "ray-service.downloadContainer" $v | nindent 6 }}
      command:
        {{- include (printf "ray-service.%sCommand" $model.from) (dict "download" $download "model" $model) | nindent 8 }}
      env:
        {{- include "ray-service.envList" (include "ray-service.downloadEnv" . | fromJson) | trim | nindent 8 }}
        {{- include (printf "ray-service.%sEnv" (ternary "azure" $model.from (regexMatch "^(azure|abfss)://" $model.source))) $download | trim | nindent 8 }}
        {{- with include "ray-service.extraEnv" $download | trim }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- with $download.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    {{- end }}
    {{- with include "ray-service.downloadedAdapters" $v | fromJson }}
    {{- /* The serving image, which contains rayhelm: `download.image` may be another one. */}}
    {{- $serving := set (deepCopy $v) "weights" (set (deepCopy $v.weights) "download" (set (deepCopy $download) "image" "")) }}
    - name: check-adapters
      {{- include "ray-service.downloadContainer" $serving | nindent 6 }}
      command: [python, -I, -B, -m, rayhelm.runtime.check_adapters, {{ toJson . | quote }}]
    {{- end }}
  {{- end }}
  containers:
    - name: complete
      {{- include "ray-service.downloadContainer" $v | nindent 6 }}
      command: [touch, {{ include "ray-service.weightsMarker" $root }}]
  volumes:
    - {name: tmp, emptyDir: {}}
    - name: weights
      persistentVolumeClaim:
        claimName: {{ include "ray-service.claimName" $root | quote }}
    {{- if $hasBucket }}
    - name: program
      configMap:
        name: {{ $program | quote }}
    {{- end }}
    {{- with $download.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
