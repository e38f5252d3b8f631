{{- /* Takes (list root values name). */ -}}
{{- define "gateway.container" -}}
{{- $v := index . 1 -}}
name: {{ index . 2 }}
image: {{ include "gateway.image" $v.image }}
imagePullPolicy: {{ $v.image.pullPolicy }}
securityContext:
  {{- include "gateway.containerSecurity" . | nindent 2 }}
resources:
  {{- range list "requests" "limits" }}
  {{ . }}:
    cpu: {{ $v.resources.cpu | quote }}
    memory: {{ $v.resources.memory | quote }}
  {{- end }}
volumeMounts:
  - name: config
    mountPath: /etc/gateway
    readOnly: true
{{- end }}
