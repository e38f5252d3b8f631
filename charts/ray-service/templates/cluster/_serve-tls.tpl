{{- /* TLS of the Serve port. Every node has a proxy, so head and workers mount the certificate. */ -}}
{{- define "ray-service.serveTlsMount" -}}
{{- if .serve.tls.secretName }}
- name: serve-tls
  mountPath: /etc/serve-tls
  readOnly: true
{{- end }}
{{- end }}

{{- define "ray-service.serveTlsVolume" -}}
{{- with .serve.tls.secretName }}
- name: serve-tls
  secret:
    secretName: {{ . | quote }}
    defaultMode: 0440
    items:
      - {key: tls.crt, path: tls.crt}
      - {key: tls.key, path: tls.key}
{{- end }}
{{- end }}

{{- define "ray-service.serveTlsOptions" -}}
{{- if .serve.tls.secretName -}}
{{ dict "ssl_certfile" "/etc/serve-tls/tls.crt" "ssl_keyfile" "/etc/serve-tls/tls.key" | toJson }}
{{- else -}}
{}
{{- end }}
{{- end }}

{{- /* The readiness probe that KubeRay adds to workers, with https: KubeRay adds none where there is one. It asks this pod, so it
       does not verify the certificate. */ -}}
{{- define "ray-service.serveTlsProbe" -}}
{{- if .serve.tls.secretName }}
readinessProbe:
  exec:
    command:
      - bash
      - -c
      - >-
        wget --tries 1 -T 2 -q -O- http://localhost:52365/api/local_raylet_healthz | grep success &&
        wget --no-check-certificate --tries 1 -T 10 -q -O- https://localhost:{{ int .serve.port }}/-/healthz | grep success
  initialDelaySeconds: 10
  timeoutSeconds: 2
  periodSeconds: 5
  failureThreshold: 1
{{- end }}
{{- end }}

{{- define "ray-service.scheme" -}}
{{ .serve.tls.secretName | empty | ternary "http" "https" }}
{{- end }}
