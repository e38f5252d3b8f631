{{- /* A backend for each version. Each endpoint stands twice in it: once with a probe, once without, as the reserve for when
       every probe fails, because a busy service answers its probe late. */ -}}
{{- define "gateway.configBackends" -}}
{{- $all := . }}
{{- $v := .v }}
{{- range $id, $model := $v.models }}
{{- range $name, $version := $model.versions }}
{{- $several := gt (len $version.endpoints) 1 }}
backend {{ include "gateway.backend" (list $id $name) }}
  {{- if and $several (eq $model.task "chat") (eq $model.loadBalancing.kind "PrefixHash") }}
  # `ok MODEL BEGINNING`
  balance hash var(txn.read),bytes(0,{{ add 4 (len $id) (int $model.loadBalancing.prefixBytes) }})
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
  {{- range $site, $end := $version.endpoints }}
  {{- $address := printf "%s:%d weight %d" (include "gateway.host" (list $all.root $v $end)) (int $end.port) (int $end.weight) }}
  server {{ $site }} {{ $address }} check
  server {{ $site }}.unchecked {{ $address }} backup
  {{- end }}
{{ end }}
{{- end }}
{{- end }}
