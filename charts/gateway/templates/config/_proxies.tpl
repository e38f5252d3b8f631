{{- /* What holds for every frontend and backend. */ -}}
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
