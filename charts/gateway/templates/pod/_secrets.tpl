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
{{- include "gateway.authoritySource" (dict "ca" $remote.certificateAuthority "path" (printf "remote/%s/ca.crt" $name)) }}
{{- end }}
{{- end }}
{{- if include "gateway.hasUpstreamTls" . | trim }}
{{- include "gateway.authoritySource" (dict "ca" .upstreamTls.certificateAuthority "path" "upstream/ca.crt") }}
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

{{- define "gateway.authoritySource" -}}
{{- include "gateway.arguments" (dict "template" "gateway.authoritySource" "given" . "names" (list "ca" "path")) }}
- {{ ternary "configMap" "secret" (ne .ca.configMapName "") }}:
    name: {{ .ca.configMapName | default .ca.secretName }}
    items:
      - key: {{ .ca.key | quote }}
        path: {{ .path }}
{{- end }}
