{{- /* One backend per version. Each endpoint is in it twice: with a health check, and as a backup server without one. The
       backup servers are used when all health checks fail, because a busy service answers its health check late. */ -}}
{{- define "gateway.configBackends" -}}
{{- $data := . }}
{{- $v := .v }}
{{- range $id, $model := $v.models }}
{{- range $name, $version := $model.versions }}
{{- $several := gt (len $version.endpoints) 1 }}
backend {{ include "gateway.backend" (dict "model" $id "version" $name) }}
  {{- if and $several (get $data.tasks $model.task).has_shared_prefix (eq $model.loadBalancing.kind "PrefixHash") }}
  # `ok MODEL PREFIX`
  balance hash var(txn.parsed),bytes(0,{{ add 4 (len $id) (int $model.loadBalancing.prefixBytes) }})
  hash-type consistent
  hash-balance-factor {{ int $model.loadBalancing.loadPercent }}
  {{- else }}
  balance leastconn
  {{- end }}
  option httpchk
  http-check send meth GET uri /-/healthz
  http-check expect status 200
  option allbackups
  {{- $path := printf "%s%%[var(txn.operation)]" (trimSuffix "/" $version.routePrefix) }}
  http-request set-uri {{ $path }}{{ if eq $model.task "custom" }} unless { query -m found }
  http-request set-uri {{ $path }}?%[query] if { query -m found }{{ end }}
  http-response set-header x-model-version {{ $name }}
  default-server resolvers dns resolve-prefer ipv4 init-addr libc,none inter {{ mulf $v.health.intervalSeconds 1000 | int }}ms fall {{ int $v.health.failures }} rise 2
  {{- range $key, $endpoint := $version.endpoints }}
  {{- $address := printf "%s:%d weight %d" (include "gateway.host" (dict "root" $data.root "v" $v "endpoint" $endpoint)) (int $endpoint.port) (int $endpoint.weight) }}
  server {{ $key }} {{ $address }} check
  server {{ $key }}.unchecked {{ $address }} backup
  {{- end }}
{{ end }}
{{- end }}
{{- end }}
