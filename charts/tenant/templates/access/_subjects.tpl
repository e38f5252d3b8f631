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

{{- /* A RoleBinding to the Role of the same name, if there are subjects. Takes (list root role subjects...). */ -}}
{{- define "tenant.binding" -}}
{{- with include "tenant.subjects" (slice . 2) }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  {{- include "tenant.metadata" (slice $ 0 2) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: {{ include "tenant.name" (index $ 0) }}-{{ index $ 1 }}
subjects:
  {{- . | trim | nindent 2 }}
{{- end }}
{{- end }}
