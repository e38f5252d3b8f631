{{- /* The process. There is no stats socket, so the running configuration cannot be changed. */ -}}
{{- define "gateway.configGlobal" -}}
{{- with .v -}}
global
  # More than the frontend for clients has: each request may connect to a second frontend (`again`), and probes and Prometheus
  # connect while clients use all of theirs.
  maxconn {{ add (mul 2 .limits.connections) (include "gateway.metricsConnections" .) }}
  nbthread {{ include "gateway.threads" . }}
  hard-stop-after {{ int .drain.seconds }}s
  tune.bufsize {{ include "gateway.bufferBytes" . }}
  tune.maxrewrite 8192
  tune.stick-counters 5
  # Without this, buffers of this size are returned to the system after each request, which is slower than all other steps.
  tune.memory.hot-size {{ mul 16 (include "gateway.bufferBytes" .) }}
  .if version_atleast(3.4.5)
  # The copy of a request for retries takes a full buffer only if the request does not fit into this size.
  tune.bufsize.small {{ include "gateway.smallBufferBytes" . }}
  .endif
  .if version_atleast(2.9)
  .if version_before(3.2)
  .alert "This configuration needs HAProxy 2.8, or 3.2 or newer. Versions between them lose bodies that are sent in chunks."
  .endif
  .endif
  .if version_atleast(3.2)
  # Without this, a request waits for another round of the event loop after each 50 rules.
  tune.max-rules-at-once 1000
  .endif
  .if version_atleast(3.1)
  tune.lua.bool-sample-conversion normal
  .endif
  lua-load keys.lua {{ .timeouts.keyRefreshSeconds }}
  {{- include "gateway.configOidc" . }}
  {{- range list "gateway.loadCircuit" "gateway.loadBuckets" "gateway.loadSecrets" }}
  {{- with include . $.v | trim }}{{ . | nindent 2 }}{{ end }}
  {{- end }}
  {{- range list "gateway.loadSalt" "gateway.loadForms" }}
  {{- with include . $ | trim }}{{ . | nindent 2 }}{{ end }}
  {{- end }}
  lua-load-per-thread fields.lua
  {{- with include "gateway.loadSessions" $ | trim }}{{ . | nindent 2 }}{{ end }}
  lua-load-per-thread body.lua {{ include "gateway.prefixBytes" . }}
  {{- with include "gateway.loadCosts" . | trim }}{{ . | nindent 2 }}{{ end }}
  lua-load-per-thread metrics.lua {{ include "gateway.reasons" $ | fromJsonArray | join " " }}

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
  hold nx {{ int .resolvers.unknownNameSeconds }}s
  # When DNS fails, the last addresses stay valid for a day.
  hold timeout 24h
  hold refused 24h
  hold other 24h
{{- end }}
{{- end }}
