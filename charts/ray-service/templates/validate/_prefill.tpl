{{- /* Prompts and answers on different replicas: what Ray Serve LLM 2.60 refuses, and what was not tested. */ -}}
{{- define "ray-service.validatePrefill" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validatePrefill" "given" . "names" (list "v" "path" "model" "models")) -}}
{{- $v := .v }}
{{- $path := append .path "prefill" }}
{{- $model := .model }}
{{- $prefill := $model.prefill }}
{{- include "ray-service.validateScaling" (dict "v" $v "path" (append $path "autoscaling") "scaling" $prefill.autoscaling) }}
{{- include "ray-service.validateTarget" (dict "v" $v "path" $path "model" (merge (dict "engine" $model.engine) $prefill)) }}
{{- $why := "" }}
{{- if gt .models 1 }}
{{- $why = "build_pd_openai_app takes one model; give this one an application of its own" }}
{{- else if ne $model.task "chat" }}
{{- $why = printf "Ray sends the requests of chat and completions to them, and none of task %s" $model.task }}
{{- else if gt (get $model.engine "dataParallelSize" | default 1 | int) 1 }}
{{- $why = "they were not tested with data parallel ranks; set dataParallelSize to 1" }}
{{- else if gt (int $model.engine.pipelineParallelSize) 1 }}
{{- $why = "they were not tested with pipeline stages; set pipelineParallelSize to 1" }}
{{- else if lt $model.gpuFraction 1.0 }}
{{- $why = "they were not tested with a part of a GPU; set gpuFraction to 1" }}
{{- else if $model.lora.adapters }}
{{- $why = "they were not tested with adapters; remove lora.adapters" }}
{{- else if $model.aliases }}
{{- $why = "they were not tested with aliases; remove aliases" }}
{{- else if or (eq $model.autoscaling.policy.kind "EngineQueue") (eq $prefill.autoscaling.policy.kind "EngineQueue") }}
{{- $why = "the policy EngineQueue was not tested with two deployments of one model; use OngoingRequests" }}
{{- else if or (eq $model.autoscaling.minReplicas 0.0) (eq $prefill.autoscaling.minReplicas 0.0) }}
{{- $why = "a request needs a replica of both kinds; set minReplicas of both to 1 or more" }}
{{- end }}
{{- with $why }}
{{- include "ray-service.refuse" (dict "v" $v "id" "prefill-decode" "words" (dict "path" $.path "why" .)) }}
{{- end }}
{{- end }}
