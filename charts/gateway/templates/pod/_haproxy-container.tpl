{{- /* The container with HAProxy. */ -}}
{{- define "gateway.haproxyContainer" -}}
{{- $v := . }}
{{- include "gateway.container" (dict "v" $v "name" "haproxy") | trim }}
command: [haproxy, -C, /etc/gateway, -db, -f, haproxy.cfg]
env:
  {{- printf "%s%s%s" (include "gateway.socketsEnv" $v) (include "gateway.oidcEnv" $v) (include "gateway.extraEnv" $v) | nindent 2 }}
{{- with $v.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
ports:
  - {name: http, containerPort: {{ int $v.listen.port }}, protocol: TCP}
  - {name: metrics, containerPort: {{ int $v.listen.metricsPort }}, protocol: TCP}
livenessProbe:
  httpGet: {path: /livez, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 5
  timeoutSeconds: 5
lifecycle:
  preStop:
    exec:
      command: [sh, -c, {{ include "gateway.preStop" $v | quote }}]
{{- end }}
