{{- /* Pod template of the doctor, before the patch of the values. Takes the root. */ -}}
{{- define "platform.doctorTemplate" -}}
{{- $v := include "platform.values" . | fromJson }}
{{- $doctor := $v.doctor }}
{{- $name := include "platform.name" (dict "root" . "part" "doctor") -}}
metadata:
  labels:
    {{- include "platform.doctorSelector" . | nindent 4 }}
    {{- include "platform.recommendedLabels" (dict "root" . "instance" .Release.Name) | nindent 4 }}
    {{- with $doctor.podLabels }}
    {{- include "platform.textMap" . | nindent 4 }}
    {{- end }}
  {{- $annotations := eq $v.metrics.scraping.kind "Annotations" | ternary (dict "prometheus.io/scrape" "true" "prometheus.io/port" "9111") dict }}
  {{- with merge (dict) $doctor.podAnnotations $annotations }}
  annotations:
    {{- include "platform.textMap" . | nindent 4 }}
  {{- end }}
spec:
  serviceAccountName: {{ $name }}
  automountServiceAccountToken: true
  enableServiceLinks: false
  securityContext:
    {{- include "platform.podSecurity" (dict "ids" $doctor.podSecurityContext) | nindent 4 }}
  {{- with $doctor.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $doctor.nodeSelector }}
  nodeSelector:
    {{- include "platform.textMap" . | nindent 4 }}
  {{- end }}
  {{- with $doctor.tolerations }}
  tolerations:
    {{- include "platform.tolerations" . | nindent 4 }}
  {{- end }}
  {{- with $doctor.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "platform.spreadConstraints" (dict "pod" $doctor "selector" (include "platform.doctorSelector" .)) | trim }}
  topologySpreadConstraints:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - {{ include "platform.doctorContainer" $v | nindent 6 | trim }}
  volumes:
    {{- with $doctor.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
    {{- if $doctor.fleet }}
    - name: fleet
      configMap:
        name: {{ $name }}
        {{- if $doctor.measurements }}
        items:
          - {key: fleet.yaml, path: fleet.yaml}
          - {key: measurements.yaml, path: {{ $doctor.measurementsPath | quote }}}
        {{- end }}
    {{- end }}
    - name: tmp
      emptyDir: {sizeLimit: 64Mi}
{{- end }}
