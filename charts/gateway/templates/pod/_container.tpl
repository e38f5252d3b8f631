{{- define "gateway.container" -}}
{{- include "gateway.arguments" (dict "template" "gateway.container" "given" . "names" (list "v" "name")) -}}
{{- $v := .v -}}
name: {{ .name }}
image: {{ include "gateway.image" $v.image | quote }}
imagePullPolicy: {{ $v.image.pullPolicy }}
securityContext:
  {{- include "gateway.containerSecurity" . | nindent 2 }}
resources:
  {{- $limits := $v.resources.limits }}
  {{- $requests := $v.resources.requests }}
  requests:
    cpu: {{ $requests.cpu | default $limits.cpu | quote }}
    memory: {{ $requests.memory | default $limits.memory | quote }}
  limits:
    cpu: {{ $limits.cpu | quote }}
    memory: {{ $limits.memory | quote }}
volumeMounts:
  - name: config
    mountPath: /etc/gateway
    readOnly: true
  {{- include "gateway.socketsVolumeMount" $v | nindent 2 }}
  {{- with include "gateway.oidcVolumeMount" $v | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $v.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
