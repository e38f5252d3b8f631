{{- /* What holds for every frontend and backend. */ -}}
{{- define "gateway.configDefaults" -}}
{{- with .v -}}
defaults
  mode http
  timeout connect {{ int .timeouts.connectSeconds }}s
  timeout client {{ int .timeouts.clientSeconds }}s
  timeout server {{ int .timeouts.serverSeconds }}s
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
  # What never reached a server is tried again, at another. What was read by one that broke off, or that says 500 (Serve,
  # of a replica that died over it), is kept until the first byte of an answer: that copies a buffer for each request.
  retries 2
  retry-on conn-failure{{ if .retries.emptyResponse }} empty-response 500{{ end }}
  option redispatch 1
  {{- include "gateway.ownErrors" $ | trim | nindent 2 }}
{{- end }}
{{- end }}
