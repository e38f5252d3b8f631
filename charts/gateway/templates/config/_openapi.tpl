{{- /* The OpenAPI document of the operations that the gateway allows, from the same data as routes.map. It has no name of a
       model, because a tenant must not learn which models others use: `{model}` stands for the path of one. Paths of a `custom`
       application say what it does, so the document has only those of applications that every tenant may call. */ -}}

{{- define "gateway.openapiFile" -}}
{{- $paths := dict }}
{{- $list := dict "get" (include "gateway.openapiOperation" (dict "summary" "List the models of the tenant" "parameters" list) | fromJson) }}
{{- $object := dict "get" (include "gateway.openapiOperation" (dict "summary" "Show a model" "parameters" (list "model")) | fromJson) }}
{{- $_ := set $paths "/v1/models" $list }}
{{- $_ := set $paths "/v1/models/{model}" $object }}
{{- $_ := set $paths "/{model}/v1/models" $object }}
{{- $again := dict "get" (include "gateway.openapiOperation" (dict "summary" "Show a model" "parameters" (list "model" "name")) | fromJson) }}
{{- $_ := set $paths "/{model}/v1/models/{name}" $again }}
{{- range $id, $model := .v.models }}
{{- $isShared := true }}
{{- range $tenant := $.v.tenants }}
{{- $isShared = and $isShared (has $id $tenant.models) }}
{{- end }}
{{- $operations := include "gateway.operationsOf" (dict "data" $ "model" $model) | fromJson }}
{{- range $path, $operation := and (eq $model.task "custom") (not $isShared) | ternary dict $operations }}
{{- $common := dict "operation" $operation "summary" (printf "%s of a model with the task %s" $path $model.task) }}
{{- $methods := get $paths (printf "/{model}%s" $path) | default dict }}
{{- $_ := set $methods (lower $operation.method) (include "gateway.openapiOperation" (merge (dict "parameters" (list "model")) $common) | fromJson) }}
{{- $_ := set $paths (printf "/{model}%s" $path) $methods }}
{{- if eq $operation.body "json" }}
{{- $_ := set $paths $path (dict (lower $operation.method) (include "gateway.openapiOperation" (merge (dict "parameters" list) $common) | fromJson)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $body := dict "type" "object" "required" (list "message" "type" "param" "code") }}
{{- $properties := dict "type" (dict "const" "error") "error" $body }}
{{- $error := dict "type" "object" "required" (list "type" "error") "properties" $properties }}
{{- $text := dict "type" "string" }}
{{- $about := "Name of the model, with its slashes. GET /v1/models lists them." }}
{{- $about = printf "%s A model may have another path, which the operator of the gateway sets." $about }}
{{- $parameter := dict "name" "model" "in" "path" "required" true "schema" $text "description" $about }}
{{- $name := dict "name" "name" "in" "path" "required" true "schema" $text "description" "Name of the same model." }}
{{- $about = "Version of the model. Without it the gateway selects one." }}
{{- $version := dict "name" "x-model-version" "in" "header" "schema" $text "description" $about }}
{{- $statuses := keys .errors.haproxy }}
{{- range .errors.gateway }}
{{- $statuses = append $statuses (toString .status) }}
{{- end }}
{{- $about = printf "An error in OpenAI's shape: %s" ($statuses | uniq | sortAlpha | join ", ") }}
{{- $schema := dict "schema" (dict "$ref" "#/components/schemas/Error") }}
{{- $refused := dict "description" $about "content" (dict "application/json" $schema) }}
{{- $components := dict "responses" (dict "Error" $refused) "schemas" (dict "Error" $error) }}
{{- $_ := set $components "parameters" (dict "model" $parameter "name" $name "version" $version) }}
{{- $apiKey := dict "type" "apiKey" "in" "header" "name" "x-api-key" }}
{{- $_ := set $components "securitySchemes" (dict "bearer" (dict "type" "http" "scheme" "bearer") "apiKey" $apiKey) }}
{{- $info := dict "title" "Models behind the gateway" "version" .root.Chart.Version }}
{{- $security := list (dict "bearer" list) (dict "apiKey" list) }}
{{- dict "openapi" "3.1.0" "info" $info "security" $security "paths" $paths "components" $components | toJson }}
{{- end }}

{{- /* A page with the same operations, for people. It needs no script. */ -}}
{{- define "gateway.openapiPage" -}}
{{- $document := include "gateway.openapiFile" . | fromJson -}}
<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{{ $document.info.title }}</title></head><body>
<h1>{{ $document.info.title }}</h1>
<p>Send the header <code>Authorization: Bearer KEY</code> or <code>x-api-key: KEY</code>. Errors have OpenAI's shape, with the outer
<code>type</code> of the Messages API. <a href="/openapi.json">OpenAPI document</a></p>
<table><tr><th>Method</th><th>Path</th><th>Operation</th></tr>
{{- range $path, $methods := $document.paths }}
{{- range $method, $operation := $methods }}
<tr><td>{{ upper $method }}</td><td><code>{{ $path }}</code></td><td>{{ $operation.summary }}</td></tr>
{{- end }}
{{- end }}
</table></body></html>
{{- end }}

{{- /* HAProxy serves a file from one buffer. */ -}}
{{- define "gateway.validateOpenapi" -}}
{{- if ne .openapi.access "None" }}
{{- $data := dict "root" .root "v" . "errors" (.root.Files.Get "files/errors.yaml" | fromYaml) "tasks" (.root.Files.Get "files/tasks.json" | fromJson) }}
{{- $size := add (include "gateway.openapiFile" $data | len) 16384 }}
{{- if gt $size (include "gateway.bufferBytes" . | int64) }}
{{- include "gateway.refuse" (dict "v" . "id" "openapi-size" "words" (dict "size" $size "buffer" (include "gateway.bufferBytes" .))) }}
{{- end }}
{{- end }}
{{- end }}
