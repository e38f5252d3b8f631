{{- /* Versions without endpoints: every request is forwarded to a remote gateway that serves the version. */ -}}

{{- /* Versions of a model that have endpoints, as JSON. Takes a model. */ -}}
{{- define "gateway.servedHere" -}}
{{- $found := dict }}
{{- range $name, $version := .versions }}
{{- if $version.endpoints }}
{{- $_ := set $found $name $version }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{- /* The remote gateways are no backup servers here, so HAProxy counts the available ones as servers of the version. `balance
       first` takes them in their order, as it does with backup servers. */ -}}
{{- define "gateway.forwardedBackends" }}
{{- range $id, $model := .v.models }}
{{- range $name, $version := $model.versions }}
{{- if not $version.endpoints }}
{{- $remotes := include "gateway.remotesOf" (dict "v" $.v "model" $id "version" $name) | fromJsonArray }}

backend {{ include "gateway.backend" (dict "model" $id "version" $name) }}
  balance first
  {{- include "gateway.checkForms" (dict "data" $ "id" $id) }}
  http-request set-header x-rayhelm-url %[pathq]
  {{- include "gateway.haproxyErrors" (dict "errors" (dict "haproxy" $.errors.forwarded)) }}
  {{- include "gateway.remoteStatus" $ }}
  http-response set-header x-model-version {{ $name }}
  {{- include "gateway.remoteServers" (dict "v" $.v "id" $id "name" $name "version" $version "remotes" $remotes) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
