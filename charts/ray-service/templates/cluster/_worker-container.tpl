{{- /* Container of a worker pod. Takes (list root values name group). */ -}}
{{- define "ray-service.workerContainer" -}}
{{- $root := index . 0 }}
{{- $v := index . 1 }}
{{- $group := index . 3 }}
name: ray-worker
image: {{ include "ray-service.groupImage" (list $v.image $group.image) }}
imagePullPolicy: {{ $v.image.pullPolicy }}
securityContext:
  {{- include "ray-service.containerSecurity" $root | nindent 2 }}
ports:
  - name: metrics
    containerPort: 8080
  - name: serve
    containerPort: {{ int $v.serve.port }}
resources:
  {{- include "ray-service.resources" (list $group.resources (include "ray-service.devices" $group | fromJson)) | trim | nindent 2 }}
env:
  {{- include "ray-service.env" (list $v $group.env (include "ray-service.groupEnv" (list $v $group) | fromJson)) | trim | nindent 2 }}
  {{- with include "ray-service.extraEnv" $group | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with $group.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- include "ray-service.mounts" . | nindent 2 }}
  {{- if $v.weights.enabled }}
  - name: weights
    mountPath: {{ $v.weights.mountPath }}
    readOnly: true
  {{- end }}
  {{- with $group.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
