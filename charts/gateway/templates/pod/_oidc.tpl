{{- /* What the pod mounts to verify tokens. */ -}}

{{- /* HAProxy reads keys of tokens from files, and its root file system is read-only. */ -}}
{{- define "gateway.tokenKeysFolder" -}}
/var/lib/gateway
{{- end }}

{{- define "gateway.oidcVolume" -}}
{{- if .oidc.enabled }}
- name: token-keys
  emptyDir: {medium: Memory, sizeLimit: 16Mi}
{{- end }}
{{- end }}

{{- define "gateway.oidcVolumeMount" -}}
{{- if .oidc.enabled }}
- name: token-keys
  mountPath: {{ include "gateway.tokenKeysFolder" . }}
{{- end }}
{{- end }}

{{- define "gateway.oidcEnv" -}}
{{- if .oidc.enabled }}
- name: TOKEN_KEYS_FOLDER
  value: {{ include "gateway.tokenKeysFolder" . }}
{{- end }}
{{- end }}

{{- /* The JWKS in the folder of the configuration. */ -}}
{{- define "gateway.oidcSource" -}}
{{- if .oidc.enabled }}
{{- $jwks := .oidc.jwks }}
- {{ ternary "configMap" "secret" (ne $jwks.configMapName "") }}:
    name: {{ $jwks.configMapName | default $jwks.secretName }}
    optional: true
    items:
      - key: {{ $jwks.key | quote }}
        path: jwks.json
{{- end }}
{{- end }}
