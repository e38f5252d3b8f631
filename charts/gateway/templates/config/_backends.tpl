{{- /* One backend per version. Each endpoint is in it twice: with a health check, and as a backup server without one. The
       backup servers are used when all health checks fail, because a busy service answers its health check late.

       Retries count both failed connections and requests that were sent and lost. A lost request may have killed its
       replica, so a backend retries once. The Service of a single endpoint can have several pods: its backup server is a
       frontend of this process whose backend repeats failed connections only. */ -}}
{{- define "gateway.configBackends" -}}
{{- $data := . }}
{{- $v := .v }}
{{- $number := 0 }}
{{- $salted := include "gateway.saltedModels" . | fromJsonArray }}
{{- range $id, $model := $v.models }}
{{- range $name, $version := include "gateway.servedHere" $model | fromJson }}
{{- $several := gt (len $version.endpoints) 1 }}
{{- $remotes := include "gateway.remotesOf" (dict "v" $v "model" $id "version" $name) | fromJsonArray }}
{{- /* With remote gateways the first available backup server is used: theirs, then the endpoints without a health check. */}}
{{- $unchecked := and $several (not $remotes) }}
backend {{ include "gateway.backend" (dict "model" $id "version" $name) }}
  {{- if and $several (get $data.tasks $model.task).has_shared_prefix (eq $model.loadBalancing.kind "PrefixHash") }}
  {{- if include "gateway.hasSession" (dict "tasks" $data.tasks "model" $model) }}
  {{- include "gateway.balanceSession" (dict "id" $id "model" $model) | nindent 2 }}
  {{- else }}
  # PREFIX of `ok OUTPUT MODEL PREFIX`: MODEL can be an alias.
  balance hash var(txn.parsed),word(4,' ',0),bytes(0,{{ int $model.loadBalancing.prefixBytes }})
  {{- end }}
  hash-type consistent
  hash-balance-factor {{ int $model.loadBalancing.loadPercent }}
  {{- else }}
  balance leastconn
  {{- end }}
  {{- if has $id $salted }}
  {{- include "gateway.backendSalt" $data | nindent 2 }}
  {{- end }}
  {{- if and (eq $model.task "transcribe") (include "gateway.checksForms" $data | trim) }}
  {{- include "gateway.backendForms" $data | nindent 2 }}
  {{- end }}
  option httpchk
  http-check send meth GET uri /-/healthz
  http-check expect status 200
  {{- if $remotes }}
  http-request set-header x-rayhelm-url %[pathq]
  {{- else }}
  option allbackups
  {{- end }}
  {{- $path := printf "%s%%[var(txn.operation)]" (trimSuffix "/" $version.routePrefix) }}
  http-request set-uri {{ $path }}{{ if eq $model.task "custom" }} unless { query -m found }
  http-request set-uri {{ $path }}?%[query] if { query -m found }{{ end }}
  {{- if $remotes }}
  {{- include "gateway.remoteStatus" . | nindent 2 }}
  {{- end }}
  http-response set-header x-model-version {{ $name }}
  {{- $resolve := "resolvers dns resolve-prefer ipv4 init-addr libc,none" }}
  {{- $interval := mulf $v.health.intervalSeconds 1000 | int }}
  # A failed connection marks an endpoint as down at once, until two health checks succeed. Lost requests do not: one request
  # that kills replicas would take all endpoints down.
  default-server {{ $resolve }} observe layer4 error-limit 1 on-error mark-down
  default-server inter {{ $interval }}ms fastinter {{ min 250 $interval }}ms fall {{ int $v.health.failures }} rise 2
  {{- $servers := list }}
  {{- range $key, $endpoint := $version.endpoints }}
  {{- $address := include "gateway.endpointAddress" (dict "root" $data.root "v" $v "endpoint" $endpoint) }}
  {{- $servers = append $servers (printf "server %s %s %s" $key $address $resolve) }}
  server {{ $key }} {{ $address }} check
  {{- if $unchecked }}
  server {{ $key }}.unchecked {{ $address }} backup
  {{- end }}
  {{- end }}
  {{- if $remotes }}
  {{- include "gateway.remoteServers" (dict "v" $v "id" $id "name" $name "version" $version "remotes" $remotes) | trim | nindent 2 }}
  {{- end }}
  {{- if not $unchecked }}
  {{- $again := include "gateway.againName" (dict "model" $id "version" $name) }}
  {{- $number = add1 $number }}
  {{- $socket := printf "abns@rayhelm-%d-%d" (int $v.listen.port) $number }}
  server again {{ $socket }} backup

frontend {{ $again }}.in
  bind {{ $socket }} proto h1
  maxconn {{ int $v.limits.connections }}
  no log
  default_backend {{ $again }}

backend {{ $again }}
  retries {{ include "gateway.connectRetries" . }}
  retry-on conn-failure
  {{- join "\n" $servers | nindent 2 }}
  {{- end }}
{{ end }}
{{- end }}
{{- end }}
