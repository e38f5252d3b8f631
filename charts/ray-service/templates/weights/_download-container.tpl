{{- define "ray-service.downloadEnv" -}}
{{- dict "HOME" "/tmp" "HF_HOME" "/tmp/huggingface" "HF_HUB_DISABLE_TELEMETRY" "1" | toJson }}
{{- end }}

{{- define "ray-service.downloadContainer" -}}
image: {{ .weights.download.image | default (include "ray-service.image" .image) }}
imagePullPolicy: {{ .image.pullPolicy }}
securityContext:
  {{- include "ray-service.containerSecurity" . | nindent 2 }}
resources:
  {{- include "ray-service.resources" (dict "resources" .weights.download.resources "devices" dict) | trim | nindent 2 }}
volumeMounts:
  - name: tmp
    mountPath: /tmp
  - name: weights
    mountPath: {{ .weights.mountPath }}
  {{- with .weights.download.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
