{{- define "ray-service.downloadEnv" -}}
{{- dict "HOME" "/tmp" "HF_HOME" "/tmp/huggingface" "HF_HUB_DISABLE_TELEMETRY" "1" | toJson }}
{{- end }}

{{- define "ray-service.downloadContainer" -}}
image: {{ .weights.download.image | default (include "ray-service.image" .image) | quote }}
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
  {{- if include "ray-service.downloadsFrom" (dict "v" . "from" "bucket") }}
  - name: program
    mountPath: /etc/rayhelm
    readOnly: true
  {{- end }}
  {{- with .weights.download.extraVolumeMounts }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}

{{- define "ray-service.hubCommand" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.hubCommand" "given" . "names" (list "download" "model")) -}}
{{- $command := list "hf" "download" .model.source "--local-dir" .model.path }}
{{- with .model.revision }}
{{- $command = concat $command (list "--revision" .) }}
{{- end }}
{{- range concat .download.exclude .model.exclude }}
{{- $command = concat $command (list "--exclude" .) }}
{{- end }}
{{- toYaml $command }}
{{- end }}

{{- define "ray-service.bucketCommand" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.bucketCommand" "given" . "names" (list "download" "model")) -}}
{{- $command := list "python" "-I" "/etc/rayhelm/bucket_download.py" }}
{{- range $option, $value := dict "endpoint" .download.bucket.endpoint "region" .download.bucket.region "secret" .download.bucket.credentialsSecret }}
{{- with $value }}
{{- $command = append $command (printf "--%s=%s" $option .) }}
{{- end }}
{{- end }}
{{- toYaml (concat $command (list .model.source .model.revision .model.path)) }}
{{- end }}

{{- /* A SAS token, for which the chart requires the Secret. Takes weights.download. */ -}}
{{- define "ray-service.azureEnv" -}}
- name: AZURE_STORAGE_SAS_TOKEN
  valueFrom:
    secretKeyRef:
      name: {{ .bucket.credentialsSecret | quote }}
      key: AZURE_STORAGE_SAS_TOKEN
{{- end }}

{{- /* Credentials of the bucket. Without a Secret they are those of the service account, never those of the node.
       Takes weights.download. */ -}}
{{- define "ray-service.bucketEnv" -}}
- name: AWS_EC2_METADATA_DISABLED
  value: "true"
{{- with .bucket.credentialsSecret }}
{{- range $name := list "AWS_ACCESS_KEY_ID" "AWS_SECRET_ACCESS_KEY" "AWS_SESSION_TOKEN" }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef:
      name: {{ $.bucket.credentialsSecret | quote }}
      key: {{ $name }}
      {{- if eq $name "AWS_SESSION_TOKEN" }}
      optional: true
      {{- end }}
{{- end }}
{{- end }}
{{- end }}
