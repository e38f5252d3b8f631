{{- define "gateway.validateEndpoints" -}}
{{- $v := . }}
{{- range $id, $model := .models }}
{{- range $name, $version := $model.versions }}
{{- $path := printf "models.%s.versions.%s" $id $name }}
{{- if not $version.endpoints }}
{{- include "gateway.refuse" (list "version-endpoints" (dict "path" $path "model" $id "version" $name)) }}
{{- end }}
{{- range $site, $end := $version.endpoints }}
{{- $path := printf "%s.endpoints.%s" $path $site }}
{{- if eq (empty $end.service) (empty $end.host) }}
{{- include "gateway.refuse" (list "endpoint-target" (dict "path" $path "site" $site)) }}
{{- end }}
{{- if and $v.networkPolicy.enabled $end.host (not (or $end.peer.namespace $end.cidrs)) }}
{{- include "gateway.refuse" (list "endpoint-way" (dict "path" $path "host" $end.host "site" $site)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- include "gateway.validateUnread" . }}
{{- end }}

{{- /* Applications of a model: who is called, and where there. */ -}}
{{- define "gateway.applications" -}}
{{- range .versions }}
{{- $route := .routePrefix }}
{{- range .endpoints }}
{{ .service }}.{{ .namespace }}.{{ .host }}:{{ .port }}{{ $route }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Where a body is not read, nobody may be able to name a model in it that its tenant must not call. */ -}}
{{- define "gateway.validateUnread" -}}
{{- $v := . }}
{{- range $id, $model := .models }}
{{- if has $model.task (list "transcribe" "custom") }}
{{- $mine := splitList "\n" (include "gateway.applications" $model | trim) }}
{{- range $other, $second := $v.models }}
{{- if and (ne $other $id) (or (eq $model.task "custom") (has $second.task (list "transcribe" "custom"))) }}
{{- range splitList "\n" (include "gateway.applications" $second | trim) }}
{{- if has . $mine }}
{{- include "gateway.refuse" (list "unread-shared" (dict "model" $id "other" $other)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
