{{- define "ray-service.validateModels" -}}
{{- $v := . }}
{{- range $name, $app := .serve.applications }}
{{- $taken := keys $app.models }}
{{- range $id, $model := $app.models }}
{{- $path := list "serve" "applications" $name "models" $id }}
{{- include "ray-service.validateScaling" (dict "v" $v "path" (append $path "autoscaling") "scaling" $model.autoscaling) }}
{{- include "ray-service.validateTarget" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validateEngine" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validatePlacement" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validateRanks" (dict "v" $v "path" $path "model" $model "models" (len $app.models)) }}
{{- if hasKey $model "prefill" }}
{{- include "ray-service.validatePrefill" (dict "v" $v "path" $path "model" $model "models" (len $app.models)) }}
{{- end }}
{{- include "ray-service.validateSource" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validateAdapters" (dict "v" $v "path" $path "model" $model "taken" $taken) }}
{{- $taken = concat $taken (keys $model.lora.adapters) }}
{{- include "ray-service.validateAliases" (dict "v" $v "path" $path "model" $model "taken" $taken) }}
{{- $taken = concat $taken $model.aliases }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.validateEngine" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateEngine" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $model := .model }}
{{- $engine := $model.engine }}
{{- if lt $engine.maxNumBatchedTokens $engine.maxNumSeqs }}
{{- include "ray-service.refuse" (dict "v" $v "id" "batched-tokens" "words" (dict "path" $path "tokens" $engine.maxNumBatchedTokens "seqs" $engine.maxNumSeqs "enough" (max 8192 $engine.maxNumSeqs))) }}
{{- end }}
{{- if and $engine.trustRemoteCode (not $model.trustRemoteCodeReason) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "trust-reason" "words" (dict "path" $path)) }}
{{- end }}
{{- if and (not (get ($v.root.Files.Get "files/tasks.json" | fromJson) $model.task).has_shared_prefix) (eq $model.router.kind "PrefixAffinity") }}
{{- include "ray-service.refuse" (dict "v" $v "id" "router-task" "words" (dict "path" $path "task" $model.task)) }}
{{- end }}
{{- include "ray-service.validateArguments" . }}
{{- end }}

{{- /* Engine arguments that have a key of the chart, or that something else sets. */ -}}
{{- define "ray-service.validateArguments" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateArguments" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $owned := .v.root.Files.Get "files/engine-arguments.json" | fromJson }}
{{- range $section := list "extra" "unchecked" }}
{{- $bad := list }}
{{- $given := get $.model.engine $section }}
{{- range $key, $value := $given }}
{{- $row := get $owned $key }}
{{- if and $row (not (and (hasKey $row "harmless") (eq (toJson $row.harmless) (toJson $value)))) }}
{{- $bad = append $bad (dict "name" $key "why" $row.why) }}
{{- end }}
{{- end }}
{{- $words := dict "path" $path "section" $section }}
{{- include "ray-service.refuseEntries" (dict "v" $v "id" "engine-extra" "bad" $bad "given" $given "words" $words) }}
{{- end }}
{{- end }}
