{{- /* Container of the doctor. Takes the values. */ -}}
{{- define "platform.doctorContainer" -}}
{{- $doctor := .doctor }}
name: doctor
image: {{ include "platform.image" $doctor.image | quote }}
command: {{ include "platform.doctorCommand" . }}
env:
  # helm, which renders what the cluster should have, writes its cache there.
  - {name: HOME, value: /tmp}
  {{- with include "platform.extraEnv" $doctor | trim }}
  {{- . | nindent 2 }}
  {{- end }}
{{- with $doctor.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: metrics, containerPort: 9111, protocol: TCP}
# The first run may take minutes; /metrics answers from the start.
readinessProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
resources:
  requests: {cpu: {{ quote $doctor.resources.requests.cpu }}, memory: {{ quote $doctor.resources.requests.memory }}}
  limits: {cpu: {{ quote $doctor.resources.limits.cpu }}, memory: {{ quote $doctor.resources.limits.memory }}}
securityContext:
  {{- include "platform.containerSecurity" . | nindent 2 }}
volumeMounts:
  {{- with $doctor.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
  {{- if $doctor.fleet }}
  - {name: fleet, mountPath: /etc/rayhelm, readOnly: true}
  {{- end }}
  - {name: tmp, mountPath: /tmp}
{{- end }}
