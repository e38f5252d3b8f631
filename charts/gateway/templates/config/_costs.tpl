{{- /* What a request of a tenant with `tokensPerMinute` may cost. costs.lua reads it in the body. */ -}}

{{- /* After body.lua, whose functions it calls. */ -}}
{{- define "gateway.loadCosts" }}
{{- if include "gateway.hasBuckets" .v | trim }}
  lua-load-per-thread costs.lua {{ include "gateway.bytesPerToken" . }}
{{- end }}
{{- end }}

{{- /* `operation` lines of operations whose responses have `usage`, and `model` lines, as costs.lua reads them, and `owner` lines
       of versions for metrics.lua. Takes (dict v tasks). */ -}}
{{- define "gateway.mapCosts" -}}
{{- $operations := include "gateway.jsonOperations" . | fromJson }}
{{- range $path := include "gateway.countedOperations" . | fromJsonArray }}
{{- $operation := get $operations $path }}
{{- $output := $operation.output | default dict }}
operation {{ $path }} {{ include "gateway.outputFields" $output }} {{ $operation.pairs | join "," | default "-" }} {{ $operation.usage_form }}
{{- end }}
{{- range $id, $model := .v.models }}
{{- with $model.contextTokens }}
model {{ $id }} {{ int64 . }}
{{- end }}
{{- range $name, $version := $model.versions }}
{{- $owner := include "gateway.ownerOf" (dict "root" $.root "v" $.v "model" $id "name" $name "version" $version) }}
owner {{ $id }}:{{ $name }} {{ $owner }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Where a version is served: the namespaces or hosts of its endpoints, or the remote gateways. */ -}}
{{- define "gateway.ownerOf" -}}
{{- include "gateway.arguments" (dict "template" "gateway.ownerOf" "given" . "names" (list "root" "v" "model" "name" "version")) -}}
{{- $owners := list }}
{{- range .version.endpoints }}
{{- $owners = append $owners (.host | default .namespace | default $.root.Release.Namespace) }}
{{- end }}
{{- if not $owners }}
{{- $owners = include "gateway.remotesOf" (dict "v" .v "model" .model "version" .name) | fromJsonArray }}
{{- end }}
{{- $owners | uniq | sortAlpha | join "," }}
{{- end }}

{{- /* The length of a body with `stream_options`. A body in chunks has none. */ -}}
{{- define "gateway.streamLength" }}
{{- if include "gateway.hasBuckets" .v | trim }}
  acl has_options var(txn.options_bytes) -m found
  acl has_length req.fhdr(content-length) -m found
  http-request set-header content-length %[req.fhdr(content-length),add(txn.options_bytes)] if has_options has_length
{{- end }}
{{- end }}
