{{- /* Pod template of the head, before the patch of the values. */ -}}
{{- define "ray-service.headTemplate" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.headTemplate" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $head := $v.head }}
metadata:
  labels:
    {{- include "ray-service.podLabels" (dict "root" $root "role" "head") | nindent 4 }}
    {{- with $head.podLabels }}
    {{- include "ray-service.textMap" . | nindent 4 }}
    {{- end }}
  annotations:
    {{- include "ray-service.evictionAnnotations" . | trim | nindent 4 }}
    {{- if eq $v.scraping.kind "Annotations" }}
    {{- include "ray-service.scrapeAnnotations" (dict "port" 8080) | nindent 4 }}
    {{- end }}
    {{- with $head.podAnnotations }}
    {{- include "ray-service.textMap" . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "ray-service.serviceAccountName" $root | quote }}
  # Code of a model can run on the head. Only the autoscaler's container mounts a token, see _options.tpl.
  automountServiceAccountToken: false
  {{- include "ray-service.podCommon" (dict "root" $root "pod" $head) | nindent 2 }}
  {{- with $head.nodeSelector }}
  nodeSelector:
    {{- include "ray-service.textMap" . | nindent 4 }}
  {{- end }}
  {{- with $head.tolerations }}
  tolerations:
    {{- include "ray-service.tolerations" . | nindent 4 }}
  {{- end }}
  {{- with $head.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "ray-service.spread" (dict "root" $root "role" "head" "name" "" "pod" $head) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- if $v.logs.stdout.enabled }}
  initContainers:
    {{- include "ray-service.logContainer" (dict "root" $root "v" $v "image" (include "ray-service.image" $v.image) "role" "head") | trim | nindent 4 }}
  {{- end }}
  containers:
    - name: ray-head
      image: {{ include "ray-service.image" $v.image | quote }}
      imagePullPolicy: {{ $v.image.pullPolicy }}
      securityContext:
        {{- include "ray-service.containerSecurity" $root | nindent 8 }}
      ports:
        {{- range $name, $port := dict "gcs-server" 6379 "dashboard" 8265 "client" 10001 "metrics" 8080 "as-metrics" 44217 "dash-metrics" 44227 "serve" $v.serve.port }}
        - name: {{ $name }}
          containerPort: {{ int $port }}
        {{- end }}
      resources:
        {{- include "ray-service.resources" (dict "resources" $head.resources "devices" dict) | trim | nindent 8 }}
      env:
        {{- include "ray-service.env" (dict "root" $root "v" $v "env" $head.env "groupEnv" (include "ray-service.imageEnv" (dict "image" $v.image "override" dict) | fromJson)) | trim | nindent 8 }}
        {{- with include "ray-service.extraEnv" $head | trim }}
        {{- . | nindent 8 }}
        {{- end }}
      {{- with $head.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      volumeMounts:
        {{- include "ray-service.mounts" . | nindent 8 }}
        {{- with $head.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
  volumes:
    {{- include "ray-service.volumes" (dict "root" $root "v" $v "pod" $head) | nindent 4 }}
    {{- if $v.autoscaler.enabled }}
    {{- include "ray-service.autoscalerVolumes" . | trim | nindent 4 }}
    {{- end }}
    {{- with $head.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
