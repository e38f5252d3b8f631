{{- /* Sizes of the process. A request's body lies whole in one buffer, so a buffer holds the largest body, the headers
       and HAProxy's own notes on both. There is no stats socket: nobody can change what runs. */ -}}
{{- define "gateway.bufferBytes" -}}
{{ add .limits.bodyBytes .limits.headerBytes 32768 }}
{{- end }}

{{- define "gateway.threads" -}}
{{ max 1 (div (add (include "gateway.milliCpu" .resources.cpu) 999) 1000) }}
{{- end }}

{{- define "gateway.milliCpu" -}}
{{- $cpu := toString . }}
{{- if hasSuffix "m" $cpu -}}
{{ trimSuffix "m" $cpu | int64 }}
{{- else -}}
{{ mulf 1000 ($cpu | float64) | ceil | int64 }}
{{- end }}
{{- end }}

{{- define "gateway.configGlobal" -}}
{{- with .v -}}
global
  maxconn {{ int .limits.connections }}
  nbthread {{ include "gateway.threads" . }}
  hard-stop-after {{ int .drain.seconds }}s
  tune.bufsize {{ include "gateway.bufferBytes" . }}
  tune.maxrewrite 8192
  .if version_atleast(3.1)
  tune.lua.bool-sample-conversion normal
  .endif
  lua-load keys.lua {{ .timeouts.keyRefreshSeconds }}
  lua-load-per-thread body.lua

resolvers dns
  {{- if .resolvers.nameservers }}
  {{- range $number, $address := .resolvers.nameservers }}
  nameserver dns{{ $number }} {{ $address }}
  {{- end }}
  {{- else }}
  parse-resolv-conf
  {{- end }}
  accepted_payload_size 8192
  hold valid {{ int .resolvers.validSeconds }}s
  # A DNS that is ill empties no backend: its last answer holds for a day.
  hold timeout 24h
  hold refused 24h
  hold other 24h
{{- end }}
{{- end }}

{{- define "gateway.configDefaults" -}}
{{- with .v -}}
defaults
  mode http
  timeout connect {{ int .timeouts.connectSeconds }}s
  timeout client {{ int .timeouts.clientSeconds }}s
  timeout server {{ int .timeouts.silenceSeconds }}s
  timeout queue {{ int .timeouts.connectSeconds }}s
  timeout check {{ mulf .health.intervalSeconds 1000 | int }}ms
  timeout http-request {{ int .timeouts.headerSeconds }}s
  timeout http-keep-alive {{ int .timeouts.keepAliveSeconds }}s
  # A client that goes ends the work upstream; chunks of a stream go out as they come.
  option abortonclose
  option http-no-delay
  option dontlognull
  option http-ignore-probes
  .if version_atleast(3.2)
  # Before that, no request goes up in chunks. Both, because the first releases of 3.2 took one for the other.
  option http-drop-request-trailers
  option http-drop-response-trailers
  .endif
  # Only what never reached a server is tried again, and then at another: one that broke off may have fallen by the very
  # request. To keep requests for a second try would also copy every buffer.
  retries 2
  retry-on conn-failure
  option redispatch 1
  {{- include "gateway.ownErrors" $ | trim | nindent 2 }}
{{- end }}
{{- end }}
