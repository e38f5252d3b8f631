{{- /* Subjects of a RoleBinding. Takes one or several of `access`. */ -}}
{{- define "tenant.subjects" -}}
{{- range . }}
{{- range .groups }}
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: {{ quote . }}}
{{- end }}
{{- range .users }}
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: {{ quote . }}}
{{- end }}
{{- range .serviceAccounts }}
- {kind: ServiceAccount, namespace: {{ splitList "/" . | first }}, name: {{ splitList "/" . | last | quote }}}
{{- end }}
{{- end }}
{{- end }}

{{- /* A RoleBinding to the Role of the same name, if there are subjects. */ -}}
{{- define "tenant.binding" -}}
{{- include "tenant.arguments" (dict "template" "tenant.binding" "given" . "names" (list "root" "role" "access")) -}}
{{- with include "tenant.subjects" .access }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "tenant.partMetadata" (dict "root" $.root "part" $.role) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "tenant.name" $.root }}-{{ $.role }}
subjects:
  {{- . | trim | nindent 2 }}
{{- end }}
{{- end }}
