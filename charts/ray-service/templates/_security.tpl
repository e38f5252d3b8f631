{{- /* Settings that Pod Security `restricted` requires, and a read-only root file system. The user of the Ray image
       is 1000:100. It may call sudo without a password, which allowPrivilegeEscalation: false prevents. */ -}}
{{- define "ray-service.podSecurity" -}}
runAsNonRoot: true
runAsUser: 1000
runAsGroup: 100
fsGroup: 100
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end }}
