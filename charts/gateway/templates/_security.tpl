{{- /* What Pod Security `restricted` requires, and a read-only root file system. 99 is the user of HAProxy's image; any
       other user works too, because HAProxy writes nothing. */ -}}
{{- define "gateway.podSecurity" -}}
runAsNonRoot: true
runAsUser: 99
runAsGroup: 99
fsGroup: 99
seccompProfile:
  type: RuntimeDefault
{{- end }}
