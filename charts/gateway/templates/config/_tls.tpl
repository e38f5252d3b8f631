{{- /* TLS of the listener. */ -}}

{{- define "gateway.bindTls" -}}
{{- if eq .exposure.kind "TLS" }} ssl{{ range .exposure.tls.secretNames }} crt tls/{{ . }}.crt{{ end }} ssl-min-ver TLSv1.2 alpn http/1.1{{ end }}
{{- end }}

{{- /* What secrets.lua reads again; empty without TLS and remote gateways. */ -}}
{{- define "gateway.readSecrets" -}}
{{- $names := list }}
{{- range $name, $_ := .remoteGateways }}
{{- $names = append $names (printf "remote/%s" $name) }}
{{- end }}
{{- if eq .exposure.kind "TLS" }}
{{- range .exposure.tls.secretNames }}
{{- $names = append $names (printf "tls/%s" .) }}
{{- end }}
{{- end }}
{{- join " " $names }}
{{- end }}

{{- define "gateway.loadSecrets" -}}
{{- with include "gateway.readSecrets" . | trim }}
lua-load secrets.lua {{ $.timeouts.keyRefreshSeconds }} {{ . }}
{{- end }}
{{- end }}
