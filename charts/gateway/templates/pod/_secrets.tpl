{{- /* Certificates and keys in the folder of the configuration. A pod without a certificate could not start, so it waits for
       it; one without the Secret of a remote gateway serves its own cluster. */ -}}
{{- define "gateway.secretSources" -}}
{{- range $name, $remote := .remoteGateways }}
- secret:
    name: {{ $remote.secretName }}
    optional: true
    items:
      - {key: key, path: remote/{{ $name }}/key}
      - {key: accepted, path: keys/@{{ $name }}/keys}
{{- if $remote.models }}
{{- $ca := $remote.certificateAuthority }}
- {{ ternary "configMap" "secret" (ne $ca.configMapName "") }}:
    name: {{ $ca.configMapName | default $ca.secretName }}
    items:
      - key: {{ $ca.key | quote }}
        path: remote/{{ $name }}/ca.crt
{{- end }}
{{- end }}
{{- if eq .exposure.kind "TLS" }}
{{- range .exposure.tls.secretNames }}
- secret:
    name: {{ . }}
    items:
      - {key: tls.crt, path: tls/{{ . }}.crt}
      - {key: tls.key, path: tls/{{ . }}.crt.key}
{{- end }}
{{- end }}
{{- end }}
