{{- define "ray-service.validateModels" -}}
{{- $v := . }}
{{- range $name, $app := .serve.applications }}
{{- range $id, $model := $app.models }}
{{- $path := list "serve" "applications" $name "models" $id }}
{{- include "ray-service.validateScaling" (dict "v" $v "path" (append $path "autoscaling") "scaling" $model.autoscaling) }}
{{- include "ray-service.validateTarget" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validateEngine" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validatePlacement" (dict "v" $v "path" $path "model" $model) }}
{{- include "ray-service.validateSource" (dict "v" $v "path" $path "model" $model) }}
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
{{- $others := dict "model" "source sets it" "served_model_name" "the key of the model is the served name"
      "distributed_executor_backend" "Ray Serve LLM sets it" "disable_log_stats" "it turns the metrics off"
      "runner" "task sets it" "otlp_traces_endpoint" "tracing sets it" "revision" "revision sets it" "tokenizer_revision" "tokenizerRevision sets it" }}
{{- range $key := list "tensorParallelSize" "pipelineParallelSize" "maxModelLen" "maxNumSeqs" "maxNumBatchedTokens" "gpuMemoryUtilization" "dtype" "quantization" "kvCacheDtype" "enforceEager" "enablePrefixCaching" "loadFormat" "disableCustomAllReduce" "trustRemoteCode" "seed" }}
{{- $_ := set $others (snakecase $key) (printf "engine.%s sets it" $key) }}
{{- end }}
{{- if gt (get $engine.extra "data_parallel_size" | default 1 | float64) 1.0 }}
{{- $_ := set $others "data_parallel_size" "Ray Serve LLM runs one data-parallel rank in each replica, so add replicas instead" }}
{{- end }}
{{- if get $engine.extra "enable_log_requests" }}
{{- $_ := set $others "enable_log_requests" "vLLM then logs parameters of requests, with text of the client; serve.logging.accessLog logs requests without text" }}
{{- end }}
{{- range $key, $_ := $engine.extra }}
{{- with get $others $key }}
{{- include "ray-service.refuse" (dict "v" $v "id" "engine-extra" "words" (dict "path" $path "key" $key "why" . "others" (omit $engine.extra $key))) }}
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
{{- if and (contains "://" $source) $v.networkPolicy.enabled (not $v.networkPolicy.egress) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "remote-source-egress" "words" (dict "path" $path "source" $source)) }}
{{- end }}
{{- end }}
