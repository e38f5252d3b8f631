{{- /* Gateways of other clusters. A request of a remote gateway is authenticated by the key of that gateway, and is never
       forwarded again. Its tenant is in a header that clients cannot set. */ -}}

{{- /* Names of the remote gateways that serve a version, as JSON: by priority, then the one with the largest share. */ -}}
{{- define "gateway.remotesOf" -}}
{{- include "gateway.arguments" (dict "template" "gateway.remotesOf" "given" . "names" (list "v" "model" "version")) -}}
{{- $model := .model }}
{{- $version := .version }}
{{- $found := list }}
{{- range $name, $remote := .v.remoteGateways }}
{{- if has $version (get $remote.models $model | default list) }}
{{- $share := include "gateway.remoteWeight" (dict "remote" $remote "model" $model) | int }}
{{- $found = append $found (printf "%03d %03d %s" (int $remote.priority) (sub 999 $share) $name) }}
{{- end }}
{{- end }}
{{- $names := list }}
{{- range sortAlpha $found }}
{{- $names = append $names (splitList " " . | last) }}
{{- end }}
{{- $names | toJson }}
{{- end }}

{{- /* Lines of one ACL that holds if an endpoint is available: a line of HAProxy has at most 64 words. */ -}}
{{- define "gateway.isUp" }}
{{- include "gateway.arguments" (dict "template" "gateway.isUp" "given" . "names" (list "backend" "version")) -}}
{{- range $key, $_ := .version.endpoints }}
  acl up.{{ $.backend }} srv_is_up({{ $.backend }}/{{ $key }})
{{- end }}
{{- end }}

{{- /* Conditions under which no endpoint of a version is available: none for one without endpoints. Takes (dict id name version). */ -}}
{{- define "gateway.isDown" -}}
{{- include "gateway.arguments" (dict "template" "gateway.isDown" "given" . "names" (list "id" "name" "version")) -}}
{{- if .version.endpoints }}
{{- printf " !up.%s" (include "gateway.backend" (dict "model" .id "version" .name)) }}
{{- end }}
{{- end }}

{{- /* After the limits: those of a remote gateway are in limits.map as `@NAME`, because the first gateway counts its tenant. */ -}}
{{- define "gateway.readRemote" }}
{{- if .v.remoteGateways }}
  acl is_remote var(txn.key) -m beg @
  http-request set-var(txn.remote) var(txn.key),word(1,/),bytes(1) if is_remote
  # Health checks of the other gateway: whether an endpoint of the version is available here.
  http-request set-log-level silent if is_remote { path_beg /-/ready/ }
{{- range $id, $model := .v.models }}
{{- range $name, $version := $model.versions }}
{{- $backend := include "gateway.backend" (dict "model" $id "version" $name) }}
{{- $down := include "gateway.isDown" (dict "id" $id "name" $name "version" $version) }}
{{- $check := printf "is_remote { path /-/ready/%s/%s }" $id $name }}
{{- include "gateway.isUp" (dict "backend" $backend "version" $version) }}
  http-request return status 503 content-type text/plain string "no endpoint is available" if {{ $check }}{{ $down }}
{{- if $version.endpoints }}
  http-request return status 200 content-type text/plain string ok if {{ $check }}
{{- end }}
{{- end }}
{{- end }}
  http-request set-var(txn.tenant) req.fhdr(x-rayhelm-tenant) if is_remote
  http-request return {{ get .answers "model-unknown" }} if is_remote !{ req.fhdr_cnt(x-rayhelm-tenant) eq 1 }
{{- end }}
{{- end }}

{{- /* Without an available endpoint, a backend would forward the request to a third gateway, or back. */ -}}
{{- define "gateway.refuseRemote" }}
{{- range $id, $model := .v.models }}
{{- range $name, $version := $model.versions }}
{{- if include "gateway.remotesOf" (dict "v" $.v "model" $id "version" $name) | fromJsonArray }}
{{- $backend := include "gateway.backend" (dict "model" $id "version" $name) }}
{{- $down := include "gateway.isDown" (dict "id" $id "name" $name "version" $version) }}
  http-request return {{ get $.answers "remote-unavailable" }} if is_remote { var(txn.backend) -m str {{ $backend }} }{{ $down }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Clients cannot set it: the gateway removes all headers with this prefix before. */ -}}
{{- define "gateway.remoteHeader" }}
{{- if .v.remoteGateways }}
  http-request set-header x-rayhelm-remote %[var(txn.remote)] if is_remote
{{- end }}
{{- end }}
