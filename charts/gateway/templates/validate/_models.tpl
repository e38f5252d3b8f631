{{- define "gateway.validateModels" -}}
{{- $v := . }}
{{- $backends := dict }}
{{- $tasks := .root.Files.Get "files/tasks.json" | fromJson }}
{{- range $id, $model := .models }}
{{- $backend := include "gateway.backend" (dict "model" $id "version" "") }}
{{- with get $backends $backend }}
{{- include "gateway.refuse" (dict "v" $v "id" "model-names-collide" "words" (dict "model" $id "other" .)) }}
{{- end }}
{{- $_ := set $backends $backend $id }}
{{- if not $model.versions }}
{{- include "gateway.refuse" (dict "v" $v "id" "model-versions" "words" (dict "model" $id)) }}
{{- end }}
{{- $sum := 0 }}
{{- $weights := list }}
{{- range $name, $version := $model.versions }}
{{- $sum = add $sum $version.weight }}
{{- $weights = append $weights (printf "%s %d" $name (int $version.weight)) }}
{{- end }}
{{- if ne (int $sum) 100 }}
{{- include "gateway.refuse" (dict "v" $v "id" "weights-sum" "words" (dict "model" $id "weights" (join ", " $weights) "sum" $sum "fixed" (include "gateway.fixedWeights" $model))) }}
{{- end }}
{{- $custom := eq $model.task "custom" }}
{{- if and $custom (not $model.operations) }}
{{- include "gateway.refuse" (dict "v" $v "id" "operations-missing" "words" (dict "model" $id)) }}
{{- end }}
{{- $session := $model.loadBalancing.session }}
{{- if and (or $session.header $session.fields) (not (include "gateway.hasSession" (dict "tasks" $tasks "model" $model))) }}
{{- include "gateway.refuse" (dict "v" $v "id" "session-unused" "words" (dict "model" $id "task" $model.task "kind" $model.loadBalancing.kind)) }}
{{- end }}
{{- if and $model.operations (not $custom) }}
{{- include "gateway.refuse" (dict "v" $v "id" "operations-task" "words" (dict "model" $id "task" $model.task)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* All weight for the first of the heaviest versions. Takes a model. */ -}}
{{- define "gateway.fixedWeights" -}}
{{- $most := -1 }}
{{- $heaviest := "" }}
{{- range $name, $version := .versions }}
{{- if gt (int $version.weight) $most }}
{{- $most = int $version.weight }}
{{- $heaviest = $name }}
{{- end }}
{{- end }}
{{- $fixed := list }}
{{- range $name, $_ := .versions }}
{{- $fixed = append $fixed (printf "%s: {weight: %d}" $name (eq $name $heaviest | ternary 100 0)) }}
{{- end }}
{{- join ", " $fixed }}
{{- end }}

{{- /* Every path belongs to one model. */ -}}
{{- define "gateway.validateRoutes" -}}
{{- $v := . }}
{{- $seen := dict }}
{{- range splitList "\n" (include "gateway.mapRoutes" (dict "v" . "tasks" (.root.Files.Get "files/tasks.json" | fromJson)) | trim) }}
{{- $words := splitList " " . }}
{{- $owner := gt (len $words) 4 | ternary (last $words) "every model" }}
{{- with get $seen (first $words) }}
{{- /* The path of a model may equal a route that another has by its name: only the first can move. */}}
{{- $moved := hasPrefix (dig $owner "path" "?" $v.models) (first $words) | ternary $owner . }}
{{- include "gateway.refuse" (dict "v" $v "id" "route-duplicate" "words" (dict "path" (first $words) "model" $owner "other" . "moved" $moved)) }}
{{- end }}
{{- $_ := set $seen (first $words) $owner }}
{{- end }}
{{- end }}
