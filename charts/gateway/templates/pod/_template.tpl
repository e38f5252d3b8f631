{{- /* Pod template of the gateway, before the patch of the values. Takes the root. */ -}}
{{- define "gateway.podTemplate" -}}
{{- $v := include "gateway.values" . | fromJson -}}
metadata:
  labels:
    {{- include "gateway.selector" . | nindent 4 }}
    {{- include "gateway.recommendedLabels" (dict "root" . "instance" (include "gateway.name" .)) | nindent 4 }}
    {{- with $v.podLabels }}
    {{- include "gateway.textMap" . | nindent 4 }}
    {{- end }}
  annotations:
    # A new configuration replaces the pods. New API keys do not, nor do limits, weights and access of tenants.
    checksum/config: {{ get (include "gateway.files" (dict "root" . "v" $v) | fromJson) "structure" }}
    {{- if eq $v.scraping.kind "Annotations" }}
    {{- include "gateway.scrapeAnnotations" (dict "port" $v.listen.metricsPort) | nindent 4 }}
    {{- end }}
    {{- with $v.podAnnotations }}
    {{- include "gateway.textMap" . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "gateway.serviceAccountName" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  {{- with $v.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    # The user of HAProxy's image. Any other user works too, because HAProxy writes to memory volumes only.
    {{- include "gateway.podSecurity" (dict "ids" $v.podSecurityContext) | nindent 4 }}
  terminationGracePeriodSeconds: {{ include "gateway.graceSeconds" $v }}
  topologySpreadConstraints:
    {{- include "gateway.spread" (dict "root" . "v" $v) | trim | nindent 4 }}
    {{- include "gateway.spreadConstraints" (dict "pod" $v "selector" (include "gateway.selector" .)) | trim | nindent 4 }}
  {{- with include "gateway.scheduling" $v }}
  {{- . | trim | nindent 2 }}
  {{- end }}
  initContainers:
    - {{ include "gateway.container" (dict "v" $v "name" "check") | nindent 6 | trim }}
      command: [haproxy, -C, /etc/gateway, -c, -f, haproxy.cfg]
  containers:
    - {{ include "gateway.haproxyContainer" $v | nindent 6 | trim }}
  volumes:
    - name: config
      {{- include "gateway.volume" (dict "root" . "v" $v) | nindent 6 }}
    {{- include "gateway.socketsVolume" $v | nindent 4 }}
    {{- with include "gateway.oidcVolume" $v | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $v.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
