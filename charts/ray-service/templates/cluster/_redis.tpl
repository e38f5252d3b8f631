{{- /* Redis, where the GCS keeps its state. They take the values. */ -}}

{{- define "ray-service.gcsFaultTolerance" -}}
{{- if .gcsFaultTolerance.enabled }}
gcsFaultToleranceOptions:
  redisAddress: {{ .gcsFaultTolerance.redisAddress | quote }}
  {{- with .gcsFaultTolerance.username }}
  redisUsername:
    value: {{ . | quote }}
  {{- end }}
  {{- with .gcsFaultTolerance.passwordSecret }}
  {{- if .name }}
  redisPassword:
    valueFrom:
      secretKeyRef:
        name: {{ .name | quote }}
        key: {{ .key | quote }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* After an uninstall, KubeRay deletes its data from Redis with a pod made from the head's template. What that
       pod needs must stay, or the data stays in Redis and the RayCluster stays for minutes. Argo CD reads this
       annotation too. */ -}}
{{- define "ray-service.redisCleanupPolicy" -}}
{{- if .gcsFaultTolerance.enabled -}}
helm.sh/resource-policy: keep
{{- end }}
{{- end }}
