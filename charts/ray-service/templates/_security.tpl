{{- /* What Pod Security `restricted` asks for, and a read-only root. The Ray image's user is 1000:100; it may call sudo
       without a password there, which allowPrivilegeEscalation: false closes. */ -}}
{{- define "ray-service.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 100
fsGroup: 100
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "ray-service.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}
