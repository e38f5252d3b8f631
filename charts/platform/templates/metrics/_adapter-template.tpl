{{- /* Pod template of the metrics adapter, before the patch of the values. Takes the root. */ -}}
{{- define "platform.adapterTemplate" -}}
{{- $v := include "platform.values" . | fromJson }}
{{- $adapter := $v.metrics.adapter -}}
metadata:
  labels:
    {{- include "platform.adapterSelector" . | nindent 4 }}
    {{- include "platform.recommendedLabels" (dict "root" . "instance" .Release.Name) | nindent 4 }}
    {{- with $adapter.podLabels }}
    {{- include "platform.textMap" . | nindent 4 }}
    {{- end }}
  annotations:
    # The adapter reads its rules only when it starts: new rules replace the pods.
    checksum/config: {{ include "platform.adapterRules" (dict "root" $ "metrics" $v.metrics) | sha256sum }}
    {{- with $adapter.podAnnotations }}
    {{- include "platform.textMap" . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "platform.adapterServiceAccount" (dict "root" . "v" $v) }}
  enableServiceLinks: false
  securityContext:
    {{- include "platform.podSecurity" (dict "ids" $adapter.podSecurityContext) | nindent 4 }}
  {{- with $adapter.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $adapter.nodeSelector }}
  nodeSelector:
    {{- include "platform.textMap" . | nindent 4 }}
  {{- end }}
  {{- with $adapter.tolerations }}
  tolerations:
    {{- include "platform.tolerations" . | nindent 4 }}
  {{- end }}
  {{- with $adapter.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "platform.spreadConstraints" (dict "pod" $adapter "selector" (include "platform.adapterSelector" .)) | trim }}
  topologySpreadConstraints:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - {{ include "platform.adapterContainer" $v | nindent 6 | trim }}
  volumes:
    {{- with $adapter.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    - name: config
      configMap:
        name: {{ include "platform.name" (dict "root" . "part" "metrics") }}
    - name: certificate
      {{- with $adapter.tls.secretName }}
      secret: {secretName: {{ . }}}
      {{- else }}
      emptyDir: {sizeLimit: 1Mi}
      {{- end }}
{{- end }}
