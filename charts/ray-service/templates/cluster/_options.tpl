{{- /* Options of the Ray cluster beside its pods. Take the values. */ -}}

{{- define "ray-service.autoscaler" -}}
enableInTreeAutoscaling: {{ .autoscaler.enabled }}
{{- if .autoscaler.enabled }}
autoscalerOptions:
  version: {{ .autoscaler.version }}
  idleTimeoutSeconds: {{ int .autoscaler.idleTimeoutSeconds }}
  upscalingMode: {{ .autoscaler.upscalingMode }}
  imagePullPolicy: {{ .image.pullPolicy }}
  resources:
    {{- include "ray-service.resources" (list .autoscaler.resources dict) | trim | nindent 4 }}
  # KubeRay gives the sidecar none of its own, and `restricted` would refuse the head.
  securityContext:
    {{- include "ray-service.containerSecurity" . | nindent 4 }}
  env:
    {{- include "ray-service.homeEnv" . | trim | nindent 4 }}
    # Workers of a first install wait for the download in an init container; after an hour Ray would end and remake them.
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

{{- /* When the release goes, KubeRay empties Redis with a pod made of the head's template: what that pod needs has to
       outlive the release, or Redis is never emptied and the RayCluster stays for minutes. Argo CD reads it too. */ -}}
{{- define "ray-service.keepForRedis" -}}
{{- if .gcsFaultTolerance.enabled -}}
helm.sh/resource-policy: keep
{{- end }}
{{- end }}
