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
{{- include "ray-service.validateSource" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validateAdapters" (dict "v" $v "path" $path "model" $model "taken" $taken) }}
{{- $taken = concat $taken (keys $model.lora.adapters) }}
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
{{- $given := get $.model.engine $section }}
{{- range $key, $value := $given }}
{{- $row := get $owned $key }}
{{- if and $row (not (and (hasKey $row "harmless") (eq (toJson $row.harmless) (toJson $value)))) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "engine-extra" "words" (dict "path" $path "section" $section "key" $key "why" $row.why "others" (omit $given $key))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.validateSource" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateSource" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $source := .model.source }}
{{- range list $source (get .model "tokenizer") | compact }}
{{- if and (include "ray-service.isHubId" .) $v.weights.offline (not $v.weights.enabled) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "weights-off" "words" (dict "path" $path "source" .)) }}
{{- end }}
{{- end }}
{{- include "ray-service.validateRevision" (dict "v" $v "path" $path "source" $source "revision" .model.revision) }}
{{- with get .model "tokenizer" }}
{{- include "ray-service.validateRevision" (dict "v" $v "path" $path "source" . "revision" $.model.tokenizerRevision) }}
{{- end }}
{{- if and (contains "://" $source) (not .model.revision) $v.networkPolicy.enabled (not $v.networkPolicy.egress) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "remote-source-egress" "words" (dict "path" $path "source" $source)) }}
{{- end }}
{{- end }}

{{- define "ray-service.validateRevision" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateRevision" "given" . "names" (list "v" "path" "source" "revision")) -}}
{{- $words := pick . "path" "source" "revision" }}
{{- if and (contains "://" .source) (not (regexMatch "^(s3|gs|abfss|azure)://" .source)) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "source-scheme" "words" $words) }}
{{- end }}
{{- $bucket := regexMatch "^s3://[a-z0-9][a-z0-9.-]+[a-z0-9](/[A-Za-z0-9_][A-Za-z0-9._=-]*)*$" .source }}
{{- $digits := ternary 40 (ternary 64 0 $bucket) (not (contains "://" .source)) }}
{{- if and .revision (ne (len .revision) $digits) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "source-revision" "words" $words) }}
{{- end }}
{{- $egress := .v.networkPolicy }}
{{- if and $bucket .revision $egress.enabled (not $egress.bucket.cidrs) (not $egress.bucket.peer.namespace) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "bucket-egress" "words" $words) }}
{{- end }}
{{- if and $bucket .revision (not .v.weights.enabled) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "bucket-volume" "words" $words) }}
{{- end }}
{{- end }}
