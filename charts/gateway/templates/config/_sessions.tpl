{{- /* Endpoints by session (`loadBalancing.session`). A header is read in the frontend, before the headers of the request are
       removed; a field is read by sessions.lua. Rendered only for models with a session. */ -}}

{{- /* `true` if requests of the model are hashed by session. Takes (dict tasks model). */ -}}
{{- define "gateway.hasSession" -}}
{{- include "gateway.arguments" (dict "template" "gateway.hasSession" "given" . "names" (list "tasks" "model")) -}}
{{- $balancing := .model.loadBalancing }}
{{- $hashes := and (get .tasks .model.task).has_shared_prefix (eq $balancing.kind "PrefixHash") }}
{{- if and $hashes (or $balancing.session.header $balancing.session.fields) }}true{{ end }}
{{- end }}

{{- /* MODEL PREFIX_BYTES FIELDS */ -}}
{{- define "gateway.mapSessions" -}}
{{- range $id, $model := .v.models }}
{{- if and $model.loadBalancing.session.fields (include "gateway.hasSession" (dict "tasks" $.tasks "model" $model)) }}
{{- range prepend $model.aliases $id }}
{{ . }} {{ int $model.loadBalancing.prefixBytes }} {{ join "," $model.loadBalancing.session.fields }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gateway.loadSessions" }}
{{- if include "gateway.mapSessions" . | trim }}
  lua-load-per-thread sessions.lua
{{- end }}
{{- end }}

{{- define "gateway.readSessions" }}
{{- $models := dict }}
{{- range $id, $model := .v.models }}
{{- if include "gateway.hasSession" (dict "tasks" $.tasks "model" $model) }}
{{- with $model.loadBalancing.session.header }}
{{- $_ := set $models (lower .) (append (get $models (lower .) | default list) $id) }}
{{- end }}
{{- end }}
{{- end }}
{{- /* A line of HAProxy has 64 words. */}}
{{- range $header, $ids := $models }}
{{- range chunk 40 $ids }}
{{- $has := printf "{ req.fhdr(%s),length gt 0 }" $header }}
  http-request set-var(txn.session) req.fhdr({{ $header }}) if {{ $has }} { var(txn.model) -m str {{ join " " . }} }
{{- end }}
{{- end }}
{{- end }}

{{- /* How a backend selects an endpoint. `ok OUTPUT MODEL PREFIX` has a session of the body instead of the prefix, and
       sessions.lua bounds both. MODEL can be an alias. Takes (dict data id several). */ -}}
{{- define "gateway.balance" }}
{{- include "gateway.arguments" (dict "template" "gateway.balance" "given" . "names" (list "data" "id" "several")) }}
{{- $model := get .data.v.models .id }}
{{- $balancing := $model.loadBalancing }}
{{- $hashes := and .several (get .data.tasks $model.task).has_shared_prefix (eq $balancing.kind "PrefixHash") }}
{{- if not $hashes }}
  balance leastconn
{{- else }}
{{- if include "gateway.hasSession" (dict "tasks" .data.tasks "model" $model) }}
{{- $bytes := not (empty $balancing.session.fields) | ternary "" (printf ",bytes(0,%d)" (int $balancing.prefixBytes)) }}
  http-request set-var(txn.session) var(txn.parsed),word(4,' ',0){{ $bytes }} unless { var(txn.session) -m found }
  balance hash var(txn.session)
{{- else }}
  # PREFIX of `ok OUTPUT MODEL PREFIX`: MODEL can be an alias.
  balance hash var(txn.parsed),word(4,' ',0),bytes(0,{{ int $balancing.prefixBytes }})
{{- end }}
  hash-type consistent
  hash-balance-factor {{ int $balancing.loadPercent }}
{{- end }}
{{- end }}
