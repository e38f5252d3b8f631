{{- define "gateway.validateEndpoints" -}}
{{- $v := . }}
{{- range $id, $model := .models }}
{{- range $name, $version := $model.versions }}
{{- $path := printf "models.%s.versions.%s" $id $name }}
{{- if not (or $version.endpoints (include "gateway.remotesOf" (dict "v" $v "model" $id "version" $name) | fromJsonArray)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "version-endpoints" "words" (dict "path" $path "model" $id "version" $name)) }}
{{- end }}
{{- if and $version.endpoints (not $version.routePrefix) }}
{{- include "gateway.refuse" (dict "v" $v "id" "version-route" "words" (dict "model" $id "version" $name)) }}
{{- end }}
{{- range $key, $end := $version.endpoints }}
{{- $path := printf "%s.endpoints.%s" $path $key }}
{{- if eq (empty $end.service) (empty $end.host) }}
{{- include "gateway.refuse" (dict "v" $v "id" "endpoint-target" "words" (dict "path" $path "model" $id "version" $name "endpoint" $key)) }}
{{- end }}
{{- if and $v.networkPolicy.enabled $end.host (not (or (include "gateway.peer" $end.peer) $end.cidrs)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "endpoint-egress" "words" (dict "path" $path "host" $end.host "model" $id "version" $name "endpoint" $key)) }}
{{- end }}
{{- if and $end.tls (not $end.serverName) (regexMatch "^[0-9.]+$" $end.host) }}
{{- include "gateway.refuse" (dict "v" $v "id" "upstream-server-name" "words" (dict "path" $path "host" $end.host "model" $id "version" $name "endpoint" $key)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $ca := .upstreamTls.certificateAuthority }}
{{- if and (include "gateway.hasUpstreamTls" . | trim) (eq (empty $ca.configMapName) (empty $ca.secretName)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "upstream-ca" "words" dict) }}
{{- end }}
{{- include "gateway.validateUnread" . }}
{{- end }}

{{- /* Serve applications of a model, each as server and path. */ -}}
{{- define "gateway.applications" -}}
{{- range .versions }}
{{- $route := .routePrefix }}
{{- range .endpoints }}
{{ .service }}.{{ .namespace }}.{{ .host }}:{{ .port }}{{ $route }}
{{- end }}
{{- end }}
{{- end }}

{{- /* If the gateway does not read a body, that body must not be able to select a model that the tenant may not use. */ -}}
{{- define "gateway.validateUnread" -}}
{{- $v := . }}
{{- $tasks := $v.root.Files.Get "files/tasks.json" | fromJson }}
{{- range $id, $model := .models }}
{{- if include "gateway.isUnread" (dict "tasks" $tasks "model" $model) }}
{{- $mine := splitList "\n" (include "gateway.applications" $model | trim) }}
{{- range $other, $second := $v.models }}
{{- if and (ne $other $id) (or (eq $model.task "custom") (include "gateway.isUnread" (dict "tasks" $tasks "model" $second))) }}
{{- range splitList "\n" (include "gateway.applications" $second | trim) }}
{{- if and . (has . $mine) }}
{{- include "gateway.refuse" (dict "v" $v "id" "unread-body-shared" "words" (dict "model" $id "other" $other "version" (keys $model.versions | sortAlpha | first) "route" (printf "/%s-app" (replace "/" "-" $id)))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* `true` if the gateway does not read the bodies of a model's requests. */ -}}
{{- define "gateway.isUnread" -}}
{{- include "gateway.arguments" (dict "template" "gateway.isUnread" "given" . "names" (list "tasks" "model")) -}}
{{- $unread := eq .model.task "custom" }}
{{- range (get .tasks .model.task).operations }}
{{- $unread = or $unread (eq .body "stream") }}
{{- end }}
{{- if $unread }}true{{ end }}
{{- end }}
