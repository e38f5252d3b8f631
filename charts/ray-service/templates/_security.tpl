{{- /* The user of the Ray image is 1000:100. It may call sudo without a password, which allowPrivilegeEscalation: false
       prevents. */ -}}
{{- define "ray-service.securityContext" -}}
{{ include "ray-service.podSecurity" (dict "user" 1000 "group" 100 "fsGroupChangePolicy" "OnRootMismatch") }}
{{- end }}
