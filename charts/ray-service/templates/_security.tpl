{{- /* The user of the Ray image is 1000:100. It may call sudo without a password, which allowPrivilegeEscalation: false
       prevents. Takes the root. */ -}}
{{- define "ray-service.securityContext" -}}
{{ include "ray-service.podSecurity" (dict "ids" (include "ray-service.values" . | fromJson).podSecurityContext "fsGroupChangePolicy" "OnRootMismatch") }}
{{- end }}
