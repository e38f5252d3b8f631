{{- /* Generated from charts/lib/security.tpl by `make generate`. Do not edit. */ -}}
{{- /* What Pod Security `restricted` requires, and a read-only root file system. */ -}}

{{- /* Security context of every container. */ -}}
{{- define "argocd.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Security context of every pod. Takes a dict: user and group of the image, and optionally
       fsGroupChangePolicy. */ -}}
{{- define "argocd.podSecurity" -}}
{{- include "argocd.arguments" (dict "template" "argocd.podSecurity" "given" . "names" (list "user" "group")) -}}
runAsNonRoot: true
runAsUser: {{ .user }}
runAsGroup: {{ .group }}
fsGroup: {{ .group }}
{{- with get . "fsGroupChangePolicy" }}
fsGroupChangePolicy: {{ . }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}
