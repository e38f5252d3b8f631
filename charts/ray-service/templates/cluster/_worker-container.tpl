{{- /* Container of a worker pod. */ -}}
{{- define "ray-service.workerContainer" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.workerContainer" "given" . "names" (list "root" "v" "name" "group")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $group := .group }}
name: ray-worker
image: {{ include "ray-service.groupImage" (dict "image" $v.image "override" $group.image) | quote }}
imagePullPolicy: {{ $v.image.pullPolicy }}
securityContext:
  {{- include "ray-service.containerSecurity" $root | nindent 2 }}
ports:
  - name: metrics
    containerPort: 8080
  - name: serve
    containerPort: {{ int $v.serve.port }}
{{- include "ray-service.serveTlsProbe" $v }}
resources:
  {{- include "ray-service.resources" (dict "resources" $group.resources "devices" (include "ray-service.devices" $group | fromJson)) | trim | nindent 2 }}
env:
  {{- include "ray-service.env" (dict "root" $root "v" $v "env" $group.env "groupEnv" (include "ray-service.groupEnv" (dict "v" $v "group" $group) | fromJson)) | trim | nindent 2 }}
  {{- with include "ray-service.extraEnv" $group | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with $group.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- include "ray-service.mounts" . | nindent 2 }}
  {{- if and $v.weights.enabled $group.mountsWeights }}
  - name: weights
    mountPath: {{ $v.weights.mountPath }}
    readOnly: true
  {{- end }}
  {{- if $group.mountsWeights }}
  {{- with include "ray-service.modelImageMounts" $v | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- end }}
  {{- with $group.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
