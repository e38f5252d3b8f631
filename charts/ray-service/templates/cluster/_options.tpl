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
    # HOME would otherwise add a directory of Python packages that a process can write.
    - name: PYTHONNOUSERSITE
      value: "1"
  volumeMounts:
    - name: autoscaler
      mountPath: /tmp
      subPath: tmp
    - name: autoscaler
      mountPath: /cache
      subPath: cache
    - name: api-access
      mountPath: /var/run/secrets/kubernetes.io/serviceaccount
      readOnly: true
{{- end }}
{{- end }}

{{- /* Volumes of the head that only the autoscaler's container mounts. The token of the API server, because code of a
       model can run on the head. Its own /tmp and /cache, because Python would run what such code writes there. */ -}}
{{- define "ray-service.autoscalerVolumes" -}}
{{- if .v.logs.stdout.enabled }}
# KubeRay mounts it, and makes it where it is missing. The container `logs` needs it by name.
- name: ray-logs
  emptyDir:
    sizeLimit: {{ include "ray-service.quantity" (dict "quantities" (list .v.head.tmpSize)) | quote }}
{{- end }}
- name: autoscaler
  emptyDir:
    sizeLimit: 1Gi
- name: api-access
  projected:
    # The token in its default mode is readable by root alone, and fsGroup makes it readable by the group.
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
      - downwardAPI:
          items:
            - path: namespace
              fieldRef:
                fieldPath: metadata.namespace
{{- end }}
