{{- /* Maps that the rules look up, one line per entry. Takes (dict root v errors tasks). */ -}}

{{- /* Operations of a model by path: those of its task that its data path has, or its own for `custom`. Takes (dict data model). */ -}}
{{- define "gateway.operationsOf" -}}
{{- include "gateway.arguments" (dict "template" "gateway.operationsOf" "given" . "names" (list "data" "model")) -}}
{{- $found := dict }}
{{- range $path, $operation := include "gateway.knownOperations" . | fromJson }}
{{- $isThere := or (eq $.model.dataPath "Direct") (not (get $operation "is_direct")) }}
{{- if $isThere }}{{ $_ := set $found $path $operation }}{{ end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{- /* The same with those of other data paths. Clients that use one get the reason. */ -}}
{{- define "gateway.knownOperations" -}}
{{- include "gateway.arguments" (dict "template" "gateway.knownOperations" "given" . "names" (list "data" "model")) -}}
{{- $operations := (get .data.tasks .model.task).operations | deepCopy }}
{{- range $path, $operation := .model.operations }}
{{- $_ := set $operations $path (dict "method" $operation.method "body" "stream") }}
{{- end }}
{{- $operations | toJson }}
{{- end }}

{{- /* PATH BODY METHOD UPSTREAM-PATH, and the model if the path names it. */ -}}
{{- define "gateway.mapRoutes" -}}
{{- include "gateway.arguments" (dict "template" "gateway.mapRoutes" "given" . "names" (list "v" "tasks")) -}}
/v1/models list GET /v1/models
{{- $shared := dict }}
{{- range $id, $model := .v.models }}
/v1/models/{{ $id }} object GET /v1/models {{ $id }}
{{- range $model.aliases }}
/v1/models/{{ . }} object GET /v1/models {{ . }}
{{- end }}
{{ $model.path }}/v1/models list GET /v1/models {{ $id }}
{{ $model.path }}/v1/models/{{ $id }} object GET /v1/models {{ $id }}
{{- range $path, $operation := include "gateway.knownOperations" (dict "data" $ "model" $model) | fromJson }}
{{ $model.path }}{{ $path }} {{ $operation.body }} {{ $operation.method }} {{ $path }} {{ $id }}
{{- if eq $operation.body "json" }}
{{- $_ := set $shared $path $operation }}
{{- end }}
{{- end }}
{{- end }}
{{- range $path, $operation := $shared }}
{{ $path }} json {{ $operation.method }} {{ $path }}
{{- end }}
{{- end }}

{{- define "gateway.mapOperations" -}}
{{- range $id, $model := .v.models }}
{{- $own := include "gateway.operationsOf" (dict "data" $ "model" $model) | fromJson }}
{{- range $path, $_ := include "gateway.knownOperations" (dict "data" $ "model" $model) | fromJson }}
{{ $id }}:{{ $path }} {{ hasKey $own $path | ternary "yes" "direct" }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether a model lacks an operation of its task, or one with a JSON body of another model: such a path names no model. */ -}}
{{- define "gateway.lacksOperation" -}}
{{- $shared := include "gateway.jsonOperations" . | fromJson }}
{{- range $id, $model := .v.models }}
{{- $own := include "gateway.operationsOf" (dict "data" $ "model" $model) | fromJson }}
{{- range $path, $_ := merge (include "gateway.knownOperations" (dict "data" $ "model" $model) | fromJson) $shared }}
{{- if not (hasKey $own $path) }}true{{ end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The version with a weight of 100, or `*`. */ -}}
{{- define "gateway.onlyVersion" -}}
{{- $only := "*" }}
{{- range $name, $version := .versions }}
{{- if eq (int $version.weight) 100 }}
{{- $only = $name }}
{{- end }}
{{- end }}
{{- $only }}
{{- end }}

{{- define "gateway.mapAccess" -}}
{{- range $name, $tenant := .v.tenants }}
{{- range $id := $tenant.models | uniq }}
{{- $model := get $.v.models $id }}
{{- $version := get $tenant.pinnedVersions $id | default (include "gateway.onlyVersion" $model) }}
{{ $name }}:{{ $id }} {{ $version }}
{{- range $model.aliases }}
{{ $name }}:{{ . }} {{ $version }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
