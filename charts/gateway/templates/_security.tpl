{{- /* What Pod Security `restricted` asks for, and a read-only root. 99 is the user of HAProxy's own image; any other works
       as well, for nothing is written. */ -}}
{{- define "gateway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 99
runAsGroup: 99
fsGroup: 99
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "gateway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}
