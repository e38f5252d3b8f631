{{- /* Generated from charts/lib/security.tpl by `make generate`. Do not edit. */ -}}
{{- /* Security context of every container: what Pod Security `restricted` requires, and a read-only root. */ -}}
{{- define "ray-service.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}
