{{- /* Logs of the Ray pods. Ray Serve writes JSON to files only; what it writes to stderr is text. So a container beside Ray
       reads the files, and Ray keeps its own views of them. */ -}}

{{- /* A sidecar container as Kubernetes defines it: it starts before Ray and gets SIGTERM after Ray has ended, so that it
       writes the last lines too. Takes the image and the role of the pod. KubeRay mounts the volume `ray-logs` at /tmp/ray
       of a head with an autoscaler, so the files are there and not in `tmp`. */ -}}
{{- define "ray-service.logContainer" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.logContainer" "given" . "names" (list "root" "v" "image" "role")) -}}
{{- $stdout := .v.logs.stdout }}
- name: logs
  image: {{ .image | quote }}
  imagePullPolicy: {{ .v.image.pullPolicy }}
  restartPolicy: Always
  command: [python, -I, -B, /etc/vllm/log_relay.py, /tmp/ray/session_latest/logs]
  args:
    {{- range $stdout.files }}
    - {{ . | quote }}
    {{- end }}
  securityContext:
    {{- include "ray-service.containerSecurity" .root | nindent 4 }}
  resources:
    {{- include "ray-service.resources" (dict "resources" $stdout.resources "devices" dict) | trim | nindent 4 }}
  volumeMounts:
    {{- if and (eq .role "head") .v.autoscaler.enabled }}
    - name: ray-logs
      mountPath: /tmp/ray
    {{- else }}
    - name: tmp
      mountPath: /tmp
    {{- end }}
      readOnly: true
    - name: vllm-config
      mountPath: /etc/vllm
      readOnly: true
{{- end }}

{{- /* Environment of Ray's containers: Serve writes a line to its file only. On stderr it would appear a second time, as
       text. Takes the values. */ -}}
{{- define "ray-service.logEnv" -}}
{{- ternary (dict "RAY_SERVE_LOG_TO_STDERR" "0") dict .logs.stdout.enabled | toJson }}
{{- end }}
