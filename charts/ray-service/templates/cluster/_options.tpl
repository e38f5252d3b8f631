{{- /* Options of the Ray cluster other than its pods. They take the values. */ -}}

{{- define "ray-service.autoscaler" -}}
enableInTreeAutoscaling: {{ .autoscaler.enabled }}
{{- if .autoscaler.enabled }}
autoscalerOptions:
  version: {{ .autoscaler.version }}
  idleTimeoutSeconds: {{ int .autoscaler.idleTimeoutSeconds }}
  upscalingMode: {{ .autoscaler.upscalingMode }}
  imagePullPolicy: {{ .image.pullPolicy }}
  resources:
    {{- include "ray-service.resources" (dict "resources" .autoscaler.resources "devices" dict) | trim | nindent 4 }}
  # KubeRay sets no securityContext for the sidecar, and `restricted` would refuse the head.
  securityContext:
    {{- include "ray-service.containerSecurity" . | nindent 4 }}
  env:
    {{- include "ray-service.homeEnv" . | trim | nindent 4 }}
    # Workers of a first install wait for the download in an init container. Without this, Ray replaces them after an
    # hour.
    - name: RAY_AUTOSCALER_RECONCILE_ALLOCATE_STATUS_TIMEOUT_S
      value: "21600"
  volumeMounts:
    - name: tmp
      mountPath: /tmp
    - name: cache
      mountPath: /cache
{{- end }}
{{- end }}

{{- define "ray-service.gcsFaultTolerance" -}}
{{- if .gcsFaultTolerance.enabled }}
gcsFaultToleranceOptions:
  redisAddress: {{ .gcsFaultTolerance.redisAddress | quote }}
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
