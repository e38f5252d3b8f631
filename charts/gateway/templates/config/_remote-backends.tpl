{{- /* The way to remote gateways: a backup server of a version is a frontend of this process, whose backend sends the original
       request to the other gateway. So the retry of a failed request can change between both. */ -}}

{{- define "gateway.remoteName" -}}
{{- include "gateway.arguments" (dict "template" "gateway.remoteName" "given" . "names" (list "model" "version" "remote")) -}}
{{- include "gateway.backend" . | replace ":" "." }}.remote.{{ .remote }}
{{- end }}

{{- /* Servers in the backend of a version. Takes (dict v id name version remotes). */ -}}
{{- define "gateway.remoteServers" }}
{{- include "gateway.arguments" (dict "template" "gateway.remoteServers" "given" . "names" (list "v" "id" "name" "version" "remotes")) -}}
{{- $names := dict "model" .id "version" .name }}
{{- $backend := include "gateway.backend" $names }}
{{- $spill := .version.endpoints | empty | ternary 0 (get .v.models .id).spillAbove | int }}
{{- if $spill }}
{{- $count := "int(0)" }}
{{- range $key, $_ := .version.endpoints }}
  http-request set-var(txn.flight{{ $key | sha256sum | trunc 8 }}) srv_conn({{ $backend }}/{{ $key }})
{{- $count = printf "%s,add(txn.flight%s)" $count ($key | sha256sum | trunc 8) }}
{{- end }}
  http-request set-var(txn.leaves) bool(true) if { {{ $count }} ge {{ $spill }} } !{ var(txn.remote) -m found }
{{- end }}
{{- include "gateway.remoteShares" (dict "v" .v "names" $names "backend" $backend "version" .version "remotes" .remotes) }}
{{- $backup := .version.endpoints | empty | ternary "" " backup" }}
{{- range .remotes }}
{{- $remote := include "gateway.remoteName" (merge (dict "remote" .) $names) }}
  server remote.{{ . }} {{ include "gateway.socket" (include "gateway.remoteSocket" $remote) }}{{ $backup }} track {{ $remote }}/{{ . }}
{{- end }}
{{- end }}

{{- /* A short name, because paths of sockets have at most 107 bytes. Takes the name of the backend. */ -}}
{{- define "gateway.remoteSocket" -}}
remote-{{ . | sha256sum | trunc 12 }}
{{- end }}

{{- define "gateway.remoteFailedFile" -}}
{{- $error := get .errors.remote "remote-failed" -}}
HTTP/1.1 {{ int $error.status }} Internal Server Error
content-type: application/json
x-rayhelm-reason: {{ $error.code }}

{{ include "gateway.errorBody" $error }}
{{- end }}

{{- define "gateway.remoteBackends" }}
{{- $v := .v }}
{{- range $id, $model := $v.models }}
{{- range $name, $version := $model.versions }}
{{- range $remote := include "gateway.remotesOf" (dict "v" $v "model" $id "version" $name) | fromJsonArray }}
{{- $gateway := get $v.remoteGateways $remote }}
{{- $backend := include "gateway.remoteName" (dict "model" $id "version" $name "remote" $remote) }}
{{- $host := $gateway.serverName | default $gateway.host }}
{{- $key := printf "%q" (printf "Bearer %%[str(%s),map_str(remote-keys.map)]" $remote) }}
{{- $tls := include "gateway.verifiedTls" (dict "ca" (printf "remote/%s/ca.crt" $remote) "name" $host) }}

frontend {{ $backend }}.in
  bind {{ include "gateway.socket" (include "gateway.remoteSocket" $backend) }} mode 600 proto h1
  maxconn {{ int $v.limits.connections }}
  no log
  # A failure is a response 500 that makes the backend of the version retry: at an available endpoint, otherwise at the
  # first available remote gateway, which can be this one. Without a response it would count as a request that ends its servers.
  errorfile 502 remote-failed.http
  errorfile 503 remote-failed.http
  http-request return {{ get $.answers "remote-failed" }} if { req.fhdr(x-rayhelm-remote) -m found }
  http-request set-uri %[req.fhdr(x-rayhelm-url)]
  http-request del-header x-rayhelm-url
  default_backend {{ $backend }}

backend {{ $backend }}
  retries 0
  errorfile 502 remote-failed.http
  errorfile 503 remote-failed.http
  option httpchk
  http-check send meth GET uri /-/ready/{{ $id }}/{{ $name }} ver HTTP/1.1 hdr host {{ $host }} hdr authorization {{ $key }}
  http-check expect status 200
  http-request set-header host {{ $host }}
  http-request set-header authorization {{ $key }}
  http-request set-header x-model-version {{ $name }}
  # A refused key, a model that is not there, no available endpoint.
  acl is_final res.hdr(x-rayhelm-final) -m found
  http-response return {{ get $.answers "remote-failed" }} if { status 401 403 404 503 } !is_final
  # The other gateway has retried it. The backend of the version, which would retry a 500, sets the status again.
  http-response set-status 502 if { status 500 } is_final
  default-server resolvers dns resolve-prefer ipv4 init-addr libc,none observe layer4 error-limit 1 on-error mark-down
  default-server inter {{ mulf $v.health.intervalSeconds 1000 | int }}ms fall 2 rise 2
  server {{ $remote }} {{ $gateway.host }}:{{ int $gateway.port }} check {{ $tls }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
