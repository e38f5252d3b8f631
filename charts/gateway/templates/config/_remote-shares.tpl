{{- /* Shares of the requests among remote gateways of the same priority: each request that leaves the cluster draws a number
       below the sum of the weights of those that are available. */ -}}

{{- define "gateway.remoteWeight" -}}
{{- include "gateway.arguments" (dict "template" "gateway.remoteWeight" "given" . "names" (list "remote" "model")) -}}
{{- get (.remote.modelWeights | default dict) .model | default .remote.weight | int }}
{{- end }}

{{- /* Remote gateways of a version by priority, as JSON: a list of lists. Takes (dict v id remotes). */ -}}
{{- define "gateway.remoteGroups" -}}
{{- include "gateway.arguments" (dict "template" "gateway.remoteGroups" "given" . "names" (list "v" "remotes")) -}}
{{- $groups := dict }}
{{- range .remotes }}
{{- $priority := printf "%03d" (int (get $.v.remoteGateways .).priority) }}
{{- $_ := set $groups $priority (append (get $groups $priority | default list) .) }}
{{- end }}
{{- $found := list }}
{{- range keys $groups | sortAlpha }}
{{- $found = append $found (get $groups .) }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{- /* Rules of the backend of a version, which selects a remote gateway for the requests with `txn.leaves`. A rule whose server
       is not available is skipped. `srv_is_up` is true for a server that tracks another one, so the rules ask the other one. */ -}}
{{- define "gateway.remoteShares" }}
{{- include "gateway.arguments" (dict "template" "gateway.remoteShares" "given" . "names" (list "v" "names" "backend" "version" "remotes")) -}}
{{- $groups := include "gateway.remoteGroups" (dict "v" .v "remotes" .remotes) | fromJsonArray }}
{{- $leaves := "if { var(txn.leaves) -m found }" }}
{{- if lt (len $groups) (len .remotes) }}
{{- include "gateway.isUp" (dict "backend" .backend "version" .version) }}
{{- $down := include "gateway.isDown" (dict "id" .names.model "name" .names.version "version" .version) }}
  http-request set-var(txn.leaves) bool(true) if !{ var(txn.remote) -m found }{{ $down }}
{{- end }}
{{- if or (lt (len $groups) (len .remotes)) (get .v.models .names.model).spillAbove }}
{{- range $order, $group := $groups }}
{{- if gt (len $group) 1 }}
{{- $sum := "" }}
{{- range $number, $name := $group }}
{{- $weight := include "gateway.remoteWeight" (dict "remote" (get $.v.remoteGateways $name) "model" $.names.model) }}
{{- $server := printf "%s/%s" (include "gateway.remoteName" (merge (dict "remote" $name) $.names)) $name }}
{{- $before := empty $sum | ternary "" (printf ",add(%s)" $sum) }}
{{- $sum = printf "txn.share%d_%d" $order $number }}
  http-request set-var({{ $sum }}) srv_is_up({{ $server }}),mul({{ $weight }}){{ $before }} {{ $leaves }}
{{- end }}
  http-request set-var(txn.draw{{ $order }}) rand,mod({{ $sum }}) {{ $leaves }}
{{- range $number, $name := $group }}
  use-server remote.{{ $name }} {{ $leaves }} { var(txn.draw{{ $order }}),sub(txn.share{{ $order }}_{{ $number }}) lt 0 }
{{- end }}
{{- end }}
{{- range $group }}
  use-server remote.{{ . }} {{ $leaves }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
