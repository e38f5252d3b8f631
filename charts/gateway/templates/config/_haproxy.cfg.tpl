{{- /* haproxy.cfg, in the order in which HAProxy reads it: global, defaults, frontends, backends. What only some values need is a
       named block in a file beside this one, in the same indentation. Blocks take the data of gateway.files: root, v (the values),
       errors (files/errors.yaml), answers (arguments of `http-request return` by the id of an error), tasks (files/tasks.json). */ -}}
{{- define "gateway.haproxyConfig" -}}
{{- $v := .v -}}
{{- $answers := .answers -}}
{{- $bufferBytes := include "gateway.bufferBytes" $v | int -}}
{{- $headerBytes := int $v.limits.headerBytes -}}
{{- /* A remote gateway has added its salt, and `stream_options`. */ -}}
{{- $bodyBytes := add $v.limits.bodyBytes (empty $v.remoteGateways | ternary 0 160) | int -}}
{{- $hasUploads := include "gateway.hasUploads" . | trim -}}
# The process. HAProxy has no socket that takes commands, so nothing outside of this pod changes what it does.
global
  # More than the frontend for clients has: each request may connect to a second frontend (`again`), and probes and Prometheus
  # connect while clients use all of theirs.
  maxconn {{ add (mul 2 $v.limits.connections) (include "gateway.metricsConnections" $v) }}
  nbthread {{ include "gateway.threads" $v }}
  hard-stop-after {{ int $v.drain.seconds }}s
  tune.bufsize {{ $bufferBytes }}
  tune.maxrewrite 8192
  tune.stick-counters 5
  # Without this, buffers of this size are returned to the system after each request, which is slower than all other steps.
  tune.memory.hot-size {{ mul 16 $bufferBytes }}
  .if version_atleast(3.4.5)
  # The copy of a request for retries takes a full buffer only if the request does not fit into this size.
  tune.bufsize.small {{ include "gateway.smallBufferBytes" $v }}
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
  lua-load keys.lua {{ $v.timeouts.keyRefreshSeconds }}
  lua-load live.lua {{ $v.timeouts.keyRefreshSeconds }}
  {{- include "gateway.loadTokens" . }}
  {{- include "gateway.loadCircuit" . }}
  {{- include "gateway.loadBuckets" . }}
  {{- include "gateway.loadSecrets" . }}
  {{- include "gateway.loadSalt" . }}
  {{- include "gateway.loadForms" . }}
  lua-load-per-thread fields.lua
  {{- include "gateway.loadSessions" . }}
  lua-load-per-thread body.lua {{ include "gateway.prefixBytes" $v }}
  {{- include "gateway.loadCosts" . }}
  lua-load-per-thread metrics.lua {{ include "gateway.reasons" . | fromJsonArray | join " " }}

resolvers dns
  {{- range $number, $address := $v.resolvers.nameservers }}
  nameserver dns{{ $number }} {{ $address }}
  {{- else }}
  parse-resolv-conf
  {{- end }}
  accepted_payload_size 8192
  hold valid {{ int $v.resolvers.validSeconds }}s
  hold nx {{ int $v.resolvers.unknownNameSeconds }}s
  # When DNS fails, the last addresses stay valid for a day.
  hold timeout 24h
  hold refused 24h
  hold other 24h

# Settings of every frontend and backend.
defaults
  mode http
  timeout connect {{ int $v.timeouts.connectSeconds }}s
  timeout client {{ int $v.timeouts.clientSeconds }}s
  timeout server {{ int $v.timeouts.serverSeconds }}s
  timeout queue {{ int $v.timeouts.connectSeconds }}s
  timeout check {{ mulf $v.health.intervalSeconds 1000 | int }}ms
  timeout http-request {{ int $v.timeouts.headerSeconds }}s
  timeout http-keep-alive {{ int $v.timeouts.keepAliveSeconds }}s
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
  retry-on conn-failure{{ if $v.retries.emptyResponse }} empty-response 500{{ end }}
  option redispatch 1
  .if version_atleast(3.4.5)
  option use-small-buffers l7-retries
  .endif
  {{- include "gateway.haproxyErrors" . }}

# The frontend for clients. Each part is one step; the first step that refuses a request answers it.
frontend http
  # HTTP/1 only: each connection carries one request at a time, so `limits.connections` bounds the memory.
  bind {{ $v.listen.address }}:{{ int $v.listen.port }} proto h1{{ include "gateway.bindTls" $v }}
  maxconn {{ int $v.limits.connections }}
  option idle-close-on-response
  {{- include "gateway.frontendSources" . }}
  option http-restrict-req-hdr-names delete
  # Requests are logged on stdout, everything else on stderr: one line of JSON per request. It holds values of our own maps,
  # numbers, and a request id of safe characters.
  log stdout format raw local0 info
  log-format '{{ include "gateway.logFormat" . }}'
  {{- include "gateway.frontendClient" . }}

  # The client: a key is looked up by its hash. keys.map has TENANT/NAME for each hash; keys.lua keeps it equal to the Secrets.
  http-request set-var(txn.id) req.fhdr(x-request-id) if { req.fhdr_cnt(x-request-id) eq 1 } { req.fhdr(x-request-id) -m reg ^[A-Za-z0-9._-]{1,64}$ }
  http-request set-var(txn.id) uuid unless { var(txn.id) -m found }
  http-after-response set-header x-request-id %[var(txn.id)]
  {{- include "gateway.publicOpenapi" . }}
  http-request set-var(txn.api_key) req.fhdr(x-api-key) if { req.fhdr(x-api-key) -m len ge 1 }
  acl has_api_key var(txn.api_key) -m found
  http-request set-var(txn.bearer) req.fhdr(authorization),bytes(7) if has_api_key {{ include "gateway.hasBearer" . }}
  acl has_bearer var(txn.bearer) -m found
  acl is_bearer var(txn.bearer),strcmp(txn.api_key) eq 0
  http-request set-var(txn.keys_differ) bool(true) if has_bearer !is_bearer or { req.fhdr_cnt(x-api-key) gt 1 }
  http-request set-var(txn.keys_differ) bool(true) if has_api_key { req.fhdr_cnt(authorization) gt 1 }
  acl keys_differ var(txn.keys_differ) -m found
  http-request set-var(txn.key) var(txn.api_key),sha2(256),hex,map_str(keys.map) if has_api_key !has_bearer !keys_differ
  http-request set-var(txn.key) req.fhdr(authorization),bytes(7),sha2(256),hex,map_str(keys.map) if !keys_differ {{ include "gateway.hasBearer" . }}
  {{- include "gateway.readTokens" . }}
  http-request track-sc0 str(-) table tenants unless { var(txn.key) -m found }
  http-request return {{ get $answers "keys-differ" }} if keys_differ
  {{- include "gateway.refuseTokens" . }}
  http-request return {{ get $answers "key-invalid" }} unless { var(txn.key) -m found }
  http-request set-var(txn.tenant) var(txn.key),word(1,/)
  {{- include "gateway.trackSource" . }}

  # The limits of the tenant. Refused requests are not counted.
  http-request return {{ get $answers "url-too-long" }} if { url,length gt {{ $headerBytes }} }
  http-request return {{ get $answers "headers-too-large" }} if { req.hdrs,length gt {{ $headerBytes }} }
  http-request set-var(txn.concurrency) var(txn.tenant),map_str_int(concurrency-limits.map)
  http-request track-sc0 var(txn.tenant) table tenants
  http-request return {{ get $answers "concurrency-exceeded" }} hdr retry-after 1 if { sc_conn_cur(0),sub(txn.concurrency) gt 0 }
  {{- include "gateway.limitRates" . }}
  {{- include "gateway.readRemote" . }}

  # The route. routes.map has every valid path, byte for byte. Paths are not normalized, so `//`, `%2e` and `..` match nothing.
  http-request return {{ get $answers "http-version-unsupported" }} unless { req.ver 1.1 1.0 }
  http-request return {{ get $answers "host-missing" }} if { req.ver 1.1 } !{ req.fhdr_cnt(host) eq 1 }
  http-request set-var(txn.route) path,map_str(routes.map)
  acl has_route var(txn.route) -m found
  {{- include "gateway.openapiWithKey" . }}
  http-request return {{ get $answers "path-unknown" }} unless has_route
  http-request set-var(txn.path_model) var(txn.route),word(4,' ')
  acl has_path_model var(txn.path_model) -m found
  # A path of a model that the tenant may not use gets the same response as one that does not exist.
  http-request set-var(txn.path_access) var(txn.tenant),concat(:,txn.path_model),map_str(access.map) if has_path_model
  http-request return {{ get $answers "path-unknown" }} if has_path_model !{ var(txn.path_access) -m found }
  # It is cheaper to test that a variable exists than to compare it, and most requests have a JSON body.
  http-request set-var(txn.json) bool(true) if { var(txn.route) -m beg "json " }
  acl is_json var(txn.json) -m found
  http-request return {{ get $answers "method-not-allowed" }} hdr allow POST if is_json !{ method POST }
  http-request set-var(txn.allowed_method) var(txn.route),word(2,' ') unless is_json
  http-request set-var(txn.method) method unless is_json
  acl is_allowed_method var(txn.method),strcmp(txn.allowed_method) eq 0
  http-request return {{ get $answers "method-not-allowed" }} hdr allow %[var(txn.allowed_method)] if !is_json !is_allowed_method
  http-request set-var(txn.operation) var(txn.route),word(3,' ')
  http-request set-var(txn.body_kind) var(txn.route),word(1,' ') unless is_json
  {{- if $hasUploads }}
  http-request set-var(txn.stream) bool(true) if !is_json { var(txn.body_kind) -m str stream }
  acl is_stream var(txn.stream) -m found
  {{- end }}
  {{- include "gateway.listModels" . }}

  # The body. JSON is read completely, within a size and a time, and only after the key was accepted.
  http-request set-var(txn.length) req.fhdr(content-length) if is_json
  {{- if $hasUploads }}
  http-request return {{ get $answers "length-required" }} if is_stream { var(txn.allowed_method) -m str POST } !{ req.fhdr_cnt(content-length) eq 1 }
  http-request return {{ get $answers "length-required" }} if is_stream { req.fhdr_cnt(transfer-encoding) gt 0 }
  http-request return {{ get $answers "body-too-large" }} if is_stream { req.fhdr(content-length) -m int gt {{ int $v.limits.uploadBytes }} }
  {{- end }}
  http-request return {{ get $answers "body-too-large" }} if is_json { var(txn.length) -m int gt {{ $bodyBytes }} }
  {{- include "gateway.checkContentType" . }}
  http-request wait-for-body time {{ int $v.timeouts.bodySeconds }}s if is_json
  {{- include "gateway.holdUploads" . }}
  http-request return {{ get $answers "body-too-large" }} if is_json { req.body_len gt {{ $bodyBytes }} }
  # The result is `ok OUTPUT MODEL PREFIX` or the name of an error. The converter is fast for small bodies; the action reads all others.
  http-request set-var(txn.small) bool(true) if { var(txn.length) -m int le 4096 } { req.body_len,sub(txn.length) eq 0 }
  acl is_small var(txn.small) -m found
  {{- range $path, $_ := include "gateway.jsonOperations" . | fromJson }}
  http-request set-var(txn.parsed) req.body,lua.parse_body({{ $path }}) if is_small { var(txn.operation) -m str {{ $path }} }
  {{- end }}
  acl is_parsed var(txn.parsed) -m found
  http-request lua.parse_body if is_json !is_parsed
  http-request set-var(txn.requested_model) var(txn.parsed),word(3,' ') if is_json { var(txn.parsed) -m beg "ok " }
  acl has_requested_model var(txn.requested_model) -m found
  http-request set-var(txn.field) var(txn.parsed),word(2,' ') if !has_requested_model { var(txn.parsed) -m beg field- }
  http-request return {{ get $answers "field-refused" }} if !has_requested_model { var(txn.parsed) -m beg "field-refused " }
  http-request return {{ get $answers "field-state" }} if !has_requested_model { var(txn.parsed) -m beg "field-state " }
  {{- include "gateway.checkFields" . }}
  {{- range list "body-not-json" "body-too-complex" "model-missing" "model-not-string" "model-duplicate" "model-unknown" }}
  http-request return {{ get $answers . }} if !has_requested_model is_json { var(txn.parsed) -m str {{ . }} }
  {{- end }}
  http-request return {{ get $answers "body-read-failed" }} if !has_requested_model is_json
  acl is_path_model var(txn.requested_model),strcmp(txn.path_model) eq 0
  http-request return {{ get $answers "model-mismatch" }} if is_json has_path_model !is_path_model
  http-request set-var(txn.requested_model) var(txn.path_model) unless is_json

  # The model. One that the tenant may not use gets the same response as one that does not exist. access.map has the models of
  # each tenant with the version it always gets, or `*` where the weights decide.
  {{- $named := include "gateway.hasAliases" $v | trim | empty | ternary "txn.model" "txn.requested_model" }}
  http-request set-var(txn.fixed_version) var(txn.tenant),concat(:,txn.requested_model),map_str(access.map)
  acl is_allowed var(txn.fixed_version) -m found
  http-request return {{ get $answers "model-unknown" }} unless is_allowed
  http-request set-var(txn.model) var(txn.requested_model)
  {{- include "gateway.replaceAlias" . }}
  {{- include "gateway.checkBounds" . }}
  acl is_object var(txn.body_kind) -m str object
  http-request set-var(txn.object) var({{ $named }}),map_str(objects.map) unless is_json
  http-request return status 200 content-type application/json lf-string '{"object":"list","data":[%[var(txn.object)]]}' if !is_json is_model_list
  http-request return status 200 content-type application/json lf-string %[var(txn.object)] if !is_json is_object
  {{- if include "gateway.lacksOperation" . | trim }}
  http-request set-var(txn.served) var(txn.model),concat(:,txn.operation),map_str(operations.map)
  http-request return {{ get $answers "operation-direct" }} if { var(txn.served) -m str direct }
  http-request return {{ get $answers "operation-unsupported" }} unless { var(txn.served) -m found }
  {{- end }}

  # The version: the header decides first, then the pinned version, then the weights. slot-versions.map has a version for each slot.
  http-request set-var(txn.requested_version) req.fhdr(x-model-version)
  acl has_version var(txn.requested_version) -m found
  http-request return {{ get $answers "version-unknown" }} if has_version { req.fhdr_cnt(x-model-version) gt 1 }
  {{- include "gateway.hideVersions" . }}
  http-request set-var(txn.requested_version) var(txn.fixed_version) if !has_version !{ var(txn.fixed_version) -m str * }
  http-request set-var(txn.slots) var(txn.model),map_str_int(slot-counts.map) unless has_version
  http-request set-var(txn.slot) rand,mod(txn.slots) if { var(txn.slots) -m found }
  http-request set-var(txn.requested_version) var(txn.model),concat(:,txn.slot),map_str(slot-versions.map) if { var(txn.slot) -m found }
  http-request set-var(txn.backend) var(txn.model),concat(:,txn.requested_version),map_str(backends.map)
  http-request return {{ get $answers "version-unknown" }} unless { var(txn.backend) -m found }
  http-request set-var(txn.version) var(txn.requested_version)
  {{- include "gateway.refuseRemote" . }}
  {{- include "gateway.stopRequests" . }}
  {{- include "gateway.countTokens" . }}
  {{- include "gateway.readSessions" . }}
  {{- include "gateway.startTrace" . }}

  # Headers of the request to the model server: no key, no header that only the gateway may set, and no header that Ray or
  # vLLM would interpret: with x-request-timeout-seconds and x-request-disconnect-disabled a request would outlive its limits.
  http-request del-header {{ include "gateway.removedHeaders" (dict "json" false) }} -m reg unless is_json
  http-request del-header {{ include "gateway.removedHeaders" (dict "json" true) }} -m reg if is_json
  # The gateway holds the whole JSON body and sends it with its length: the server would read lines after the last chunk as
  # headers. From HAProxy 3.2 on the body would be lost that way, and an option drops those lines.
  .if version_before(3.2)
  http-request set-header content-length %[req.body_len] if is_json { req.fhdr_cnt(transfer-encoding) gt 0 }
  http-request del-header transfer-encoding if is_json
  .endif
  # All headers with these names are removed above.
  http-request add-header content-type application/json if is_json
  http-request add-header x-request-id %[var(txn.id)]
  http-request add-header x-rayhelm-tenant %[var(txn.tenant)]
  {{- include "gateway.forwardedForHeader" . }}
  {{- include "gateway.remoteHeader" . }}
  {{- include "gateway.traceHeaders" . }}
  {{- include "gateway.streamLength" . }}
  # Who sent it, for the metrics.
  http-request track-sc1 var(txn.tenant),concat(:,txn.model),concat(:,txn.version) table requests
  use_backend %[var(txn.backend)]

  # The response. Model servers send CORS headers that allow every origin, and their product name. x-usage- headers are the gateway's.
  http-response return {{ get $answers "response-invalid" }} unless { status 100:599 }
  http-response del-header ^(access-control-|server$|x-rayhelm-(reason|final)$|x-usage-) -m reg
  {{- include "gateway.markFinal" . }}
  {{- include "gateway.usageHeaders" . }}

  # Responses count for tenant, model and version, by class of the status.
  http-after-response sc-inc-gpc(0,1) if { status 200:299 }
  http-after-response allow if { status lt 400 }
  http-after-response sc-inc-gpc(1,1) if { status 400:499 }
  http-after-response sc-inc-gpc(2,1) if { status ge 500 }
  # A client without a valid key keeps no connection.
  http-after-response set-header connection close if { status 401 } !{ var(txn.key) -m found }
  # Refused requests count for the tenant, or for `-` without a valid key. These rules are the last ones for responses,
  # because others skip them.
  http-after-response set-var(txn.reason) res.hdr(x-rayhelm-reason)
  http-after-response allow unless { var(txn.reason) -m found }
  http-after-response del-header x-rayhelm-reason
  {{- range $index, $reason := include "gateway.reasons" . | fromJsonArray }}
  http-after-response sc-inc-gpc({{ $index }},0) if { var(txn.reason) -m str {{ $reason }} }
  {{- end }}

# Probes and metrics.
frontend metrics
  bind {{ $v.listen.address }}:{{ int $v.listen.metricsPort }} proto h1
  maxconn {{ include "gateway.metricsConnections" $v }}
  http-request use-service prometheus-exporter if { path /metrics } { method GET }
  http-request use-service lua.tenant_metrics if { path /metrics/tenants } { method GET }
  http-request return status 200 content-type text/plain string ok if { path /livez }
  {{- include "gateway.readyWithTokens" . }}
  {{- include "gateway.readyWithSalt" . }}
  # A pod that has read no key would answer 401 to every request, and one that no longer reads keys would accept revoked
  # ones: both are not ready.
  acl is_ready_path path /readyz
  acl has_keys str(keys),map_str_int(state.map) -m found
  {{- if $v.oidc.enabled }}
  acl has_keys str(token_keys),map_str_int(state.map) -m found
  {{- end }}
  http-request return status 503 content-type text/plain string "no API key was read yet" if is_ready_path !has_keys
  http-request set-var(txn.refreshed) str(refreshed),map_str_int(state.map)
  http-request set-var(txn.age) date,sub(txn.refreshed) if { var(txn.refreshed) -m found }
  acl is_fresh var(txn.age) -m int le {{ int $v.timeouts.keyMaxAgeSeconds }}
  http-request return status 200 content-type text/plain string ok if is_ready_path is_fresh
  http-request return status 503 content-type text/plain lf-string "the API keys were not read for %[var(txn.age)] s" if is_ready_path
  http-request return status 404 content-type text/plain string "available: /metrics, /metrics/tenants, /livez, /readyz"

# Counters in stick tables, which metrics.lua serves. Without `expire` an entry stays, and these tables have room for every key
# that the values allow. Refused requests by tenant:
backend tenants
  stick-table type string len 64 size {{ include "gateway.tenantEntries" . }} store gpc({{ include "gateway.reasons" . | fromJsonArray | len }}),conn_cur

# Requests by tenant, model and version.
backend requests
  stick-table type string len 512 size {{ include "gateway.requestEntries" . }} store gpc(3)

# Requests by tenant and minute. An entry is valid for two windows.
backend rates
  stick-table type string len 84 size {{ include "gateway.rateEntries" . }} expire 3m store gpc0
{{- include "gateway.sourceTables" . }}

# One backend per version. Each endpoint is in it twice: with a health check, and as a backup server without one. The backup
# servers are used when all health checks fail, because a busy service answers its health check late.
#
# Retries count both failed connections and requests that were sent and lost. A lost request may have killed its replica, so a
# backend retries once. The Service of a single endpoint can have several pods: its backup server is a frontend of this process
# (`again`) whose backend repeats failed connections only.
{{- $number := 0 }}
{{- range $id, $model := $v.models }}
{{- range $name, $version := include "gateway.servedHere" $model | fromJson }}
{{- $backend := include "gateway.backend" (dict "model" $id "version" $name) }}
{{- $remotes := include "gateway.remotesOf" (dict "v" $v "model" $id "version" $name) | fromJsonArray }}
{{- $several := gt (len $version.endpoints) 1 }}
{{- /* With remote gateways the first available backup server is used: theirs, then the endpoints without a health check. */}}
{{- $unchecked := and $several (not $remotes) }}
{{- $resolve := "resolvers dns resolve-prefer ipv4 init-addr libc,none" }}
{{- $interval := mulf $v.health.intervalSeconds 1000 | int }}
{{- $ids := include "gateway.serverIds" (dict "endpoints" $version.endpoints) | fromJson }}

backend {{ $backend }}
  {{- include "gateway.balance" (dict "data" $ "id" $id "several" $several) }}
  {{- include "gateway.setSalt" (dict "data" $ "id" $id) }}
  {{- include "gateway.checkForms" (dict "data" $ "id" $id) }}
  option httpchk
  http-check send meth GET uri /-/healthz
  http-check expect status 200
  {{- if $remotes }}
  http-request set-header x-rayhelm-url %[pathq]
  {{- else }}
  option allbackups
  {{- end }}
  {{- $path := printf "%s%%[var(txn.operation)]" (trimSuffix "/" $version.routePrefix) }}
  {{- if eq $model.task "custom" }}
  http-request set-uri {{ $path }} unless { query -m found }
  http-request set-uri {{ $path }}?%[query] if { query -m found }
  {{- else }}
  http-request set-uri {{ $path }}
  {{- end }}
  {{- if $remotes }}
  {{- include "gateway.remoteStatus" $ }}
  {{- end }}
  http-response set-header x-model-version {{ $name }}
  # A failed connection marks an endpoint as down at once, until two health checks succeed. Lost requests do not: one request
  # that kills replicas would take all endpoints down.
  default-server {{ $resolve }} observe layer4 error-limit 1 on-error mark-down
  default-server inter {{ $interval }}ms fastinter {{ min 250 $interval }}ms fall {{ int $v.health.failures }} rise 2
  {{- range $key, $endpoint := $version.endpoints }}
  {{- $address := include "gateway.endpointAddress" (dict "root" $.root "v" $v "endpoint" $endpoint) }}
  server {{ $key }} {{ $address }} id {{ get $ids $key | int }} check
  {{- if $unchecked }}
  server {{ $key }}.unchecked {{ $address }} id {{ get $ids $key | int | add 1048576 }} backup
  {{- end }}
  {{- end }}
  {{- if $remotes }}
  {{- include "gateway.remoteServers" (dict "v" $v "id" $id "name" $name "version" $version "remotes" $remotes) }}
  {{- end }}
  {{- if not $unchecked }}
  {{- $number = add1 $number }}
  {{- $socket := include "gateway.socket" (printf "again-%d" $number) }}
  {{- /* Without a colon: names with one are versions, in metrics too. */}}
  {{- $again := printf "%s.again" (replace ":" "." $backend) }}
  server again {{ $socket }} backup

frontend {{ $again }}.in
  bind {{ $socket }} mode 600 proto h1
  maxconn {{ int $v.limits.connections }}
  no log
  default_backend {{ $again }}

backend {{ $again }}
  retries 5
  retry-on conn-failure
  {{- range $key, $endpoint := $version.endpoints }}
  server {{ $key }} {{ include "gateway.endpointAddress" (dict "root" $.root "v" $v "endpoint" $endpoint) }} {{ $resolve }}
  {{- end }}
  {{- end }}
{{- end }}
{{- end }}
{{- include "gateway.forwardedBackends" . }}
{{- include "gateway.remoteBackends" . }}
{{ end }}
