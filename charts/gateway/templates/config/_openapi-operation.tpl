{{- /* Takes a dict: summary, parameters (names), and operation of files/tasks.json unless it is a GET. */ -}}
{{- define "gateway.openapiOperation" -}}
{{- include "gateway.arguments" (dict "template" "gateway.openapiOperation" "given" . "names" (list "summary" "parameters")) -}}
{{- $parameters := list }}
{{- range .parameters }}
{{- $parameters = append $parameters (dict "$ref" (printf "#/components/parameters/%s" .)) }}
{{- end }}
{{- $responses := dict "200" (dict "description" "The response of the model server, or the models") "default" (dict "$ref" "#/components/responses/Error") }}
{{- $found := dict "summary" .summary "responses" $responses }}
{{- with get . "operation" }}
{{- $parameters = append $parameters (dict "$ref" "#/components/parameters/version") }}
{{- if eq .method "POST" }}
{{- $type := ternary "application/json" "*/*" (eq .body "json") }}
{{- $_ := set $found "requestBody" (dict "required" true "content" (dict $type (dict "schema" (include "gateway.openapiBody" . | fromJson)))) }}
{{- end }}
{{- end }}
{{- set $found "parameters" $parameters | toJson }}
{{- end }}

{{- /* Fields that the gateway requires. */ -}}
{{- define "gateway.openapiBody" -}}
{{- if ne .body "json" -}}
{}
{{- else }}
{{- $choices := list }}
{{- range get . "required" | default list }}
{{- $properties := dict }}
{{- range $name, $kinds := . }}
{{- $_ := set $properties $name (dict "type" $kinds) }}
{{- end }}
{{- $choices = append $choices (dict "required" (keys . | sortAlpha) "properties" $properties) }}
{{- end }}
{{- $schema := dict "type" "object" "required" (list "model") "properties" (dict "model" (dict "type" "string")) }}
{{- if $choices }}
{{- $_ := set $schema "anyOf" $choices }}
{{- end }}
{{- $schema | toJson }}
{{- end }}
{{- end }}
