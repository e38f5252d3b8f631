{{- /* TLS of the listener. */ -}}

{{- define "gateway.bindTls" -}}
{{- if eq .exposure.kind "TLS" }} ssl{{ range .exposure.tls.secretNames }} crt tls/{{ . }}.crt{{ end }} ssl-min-ver TLSv1.2 alpn http/1.1{{ end }}
{{- end }}

{{- /* Options of a server with TLS: a certificate for another name, or of another authority, is a failed connection. */ -}}
{{- define "gateway.verifiedTls" -}}
{{- include "gateway.arguments" (dict "template" "gateway.verifiedTls" "given" . "names" (list "ca" "name")) -}}
ssl verify required ca-file {{ .ca }} sni str({{ .name }}) check-sni {{ .name }} verifyhost {{ .name }} ssl-min-ver TLSv1.2 alpn http/1.1 check-alpn http/1.1
{{- end }}

{{- /* Address of an endpoint and its options, for every server of it. */ -}}
{{- define "gateway.endpointAddress" -}}
{{- include "gateway.arguments" (dict "template" "gateway.endpointAddress" "given" . "names" (list "root" "v" "endpoint")) -}}
{{- $host := include "gateway.host" . -}}
{{ $host }}:{{ int .endpoint.port }} weight {{ int .endpoint.weight }}
{{- if .endpoint.tls }} {{ include "gateway.verifiedTls" (dict "ca" "upstream/ca.crt" "name" (.endpoint.serverName | default $host)) }}{{ end }}
{{- end }}

{{- define "gateway.hasUpstreamTls" -}}
{{- range .models }}{{ range .versions }}{{ range .endpoints }}{{ if .tls }}true{{ end }}{{ end }}{{ end }}{{ end }}
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

{{- define "gateway.loadSecrets" }}
{{- with include "gateway.readSecrets" .v | trim }}
  lua-load secrets.lua {{ $.v.timeouts.keyRefreshSeconds }} {{ . }}
{{- end }}
{{- end }}
