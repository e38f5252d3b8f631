{{- /* Container of the managed adapter. */ -}}
{{- define "platform.adapterContainer" -}}
{{- $v := . }}
{{- $adapter := $v.metrics.adapter }}
name: prometheus-adapter
image: {{ include "platform.image" $adapter.image | quote }}
args:
  {{- include "platform.adapterArguments" $v.metrics | fromJsonArray | toYaml | nindent 2 }}
ports:
  - {name: https, containerPort: {{ int $adapter.port }}, protocol: TCP}
readinessProbe:
  httpGet: {path: /readyz, port: https, scheme: HTTPS}
  periodSeconds: 5
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /livez, port: https, scheme: HTTPS}
  initialDelaySeconds: 30
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
securityContext:
  {{- include "platform.containerSecurity" . | nindent 2 }}
resources:
  {{- $limits := $adapter.resources.limits }}
  {{- $requests := $adapter.resources.requests }}
  requests: {cpu: {{ $requests.cpu | default $limits.cpu | quote }}, memory: {{ $requests.memory | default $limits.memory | quote }}}
  limits: {cpu: {{ quote $limits.cpu }}, memory: {{ quote $limits.memory }}}
{{- with include "platform.extraEnv" $adapter | trim }}
env:
  {{- . | nindent 2 }}
{{- end }}
{{- with $adapter.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
volumeMounts:
  {{- with $adapter.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  - {name: config, mountPath: /etc/adapter, readOnly: true}
  - {name: certificate, mountPath: /var/run/serving-cert, readOnly: {{ ne $adapter.tls.secretName "" }}}
{{- end }}
