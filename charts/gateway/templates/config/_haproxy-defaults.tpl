{{- /* Settings of every frontend and backend. */ -}}
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
  # An endpoint can vanish without a packet: its node loses power. Without these, a request that waits for a response waits
  # for `timeout server`, and one on an open connection for the kernel's retransmissions, 15 minutes.
  option srvtcpka
  srvtcpka-idle 10s
  srvtcpka-intvl 5s
  srvtcpka-cnt 3
  default-server tcp-ut 30s
  # When a client disconnects, its request is aborted upstream. Chunks of a stream are forwarded without delay.
  option abortonclose
  option http-no-delay
  option dontlognull
  option http-ignore-probes
  .if version_atleast(3.2)
  # Older versions send no chunked request upstream. Both options, because the first releases of 3.2 confused them.
  option http-drop-request-trailers
  option http-drop-response-trailers
  .endif
  # One retry, on another endpoint if there is one. `empty-response` and `500` (Serve sends it when a replica
  # dies during a request) make HAProxy keep a copy of each request until the first byte of the response. Releases before
  # 3.4.5 copy into a full buffer, or lose the end of a request that they copy into a small one.
  retries 1
  retry-on conn-failure{{ if .retries.emptyResponse }} empty-response 500{{ end }}
  option redispatch 1
  .if version_atleast(3.4.5)
  option use-small-buffers l7-retries
  .endif
  {{- include "gateway.haproxyErrors" $ | trim | nindent 2 }}
{{- end }}
{{- end }}
