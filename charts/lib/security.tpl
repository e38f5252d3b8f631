{{- /* Security context of every container: what Pod Security `restricted` requires, and a read-only root. */ -}}
{{- define "lib.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}
