{{- /* Series of one model. `seen`: applications and deployments that have a model already. */ -}}
{{- define "platform.modelRules" -}}
{{- include "platform.arguments" (dict "template" "platform.modelRules" "given" . "names" (list "values" "data" "name" "model" "seen")) }}
{{- $model := .model }}
{{- $data := .data }}
{{- $namespace := (get .values.metrics.services $model.service).namespace }}
{{- $label := $model.servedAs | default .name }}
{{- $of := dict "namespace" $namespace "rayhelm_dev_service" $model.service "model_name" $label }}
{{- $application := $model.application | default .name }}
{{- $deployment := $model.deployment | default (printf "LLMServer:%s" $label) }}
{{- $rules := list }}
{{- /* Queries join by deployment and by application, and two models of one would be an error of the whole rule. */ -}}
{{- $key := printf "%s/%s/%s" $model.service $application $deployment }}
{{- if not (hasKey .seen $key) }}
{{- $_ := set .seen $key true }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:model_info" "value" 1 "labels" (merge (dict "application" $application "deployment" $deployment) $of)) | fromJson) }}
{{- end }}
{{- $key = printf "%s/%s" $model.service $application }}
{{- if not (hasKey .seen $key) }}
{{- $_ := set .seen $key true }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:application_info" "value" 1 "labels" (merge (dict "application" $application) $of)) | fromJson) }}
{{- end }}
{{- $series := dict "replicas" "replicas" "minReplicas" "min_replicas" "maxReplicas" "max_replicas" "inputTokens" "input_tokens" "outputTokens" "output_tokens" "concurrency" "concurrency" "requestsPerSecond" "requests_per_second" "ttftSeconds" "ttft_seconds" "tpotSeconds" "tpot_seconds" "tokensPerSecond" "tokens_per_second" "dollarsPerMillionOutputTokens" "dollars_per_million_output_tokens" }}
{{- range $field, $part := $series }}
{{- with get $model.plan $field }}
{{- $rules = append $rules (include "platform.constant" (dict "name" (printf "rayhelm:plan_%s" $part) "value" . "labels" $of) | fromJson) }}
{{- end }}
{{- end }}
{{- if and (hasKey $model "replicaDollarsPerHour") (not (kindIs "invalid" $model.replicaDollarsPerHour)) }}
{{- $price := $model.replicaDollarsPerHour }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:plan_replica_dollars_per_hour" "value" $price "labels" $of) | fromJson) }}
{{- with $model.plan.replicas }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:plan_dollars_per_hour" "value" (mulf . $price) "labels" $of) | fromJson) }}
{{- end }}
{{- end }}
{{- $slo := $model.slo }}
{{- $at := $of }}
{{- with $model.gateway }}
{{- $at = dict "namespace" (get $.values.metrics.gateways .).namespace "rayhelm_dev_gateway" . "model_name" ($label | replace "/" "--") }}
{{- end }}
{{- $objectives := list }}
{{- with $slo.availability }}
{{- $objectives = append $objectives (dict "labels" (merge (dict "slo" "availability") $at) "share" .) }}
{{- end }}
{{- range $id, $target := dict "ttft" $slo.ttftSeconds "tpot" $slo.tpotSeconds }}
{{- if $target }}
{{- $le := include "platform.boundary" (dict "boundaries" (get $data.boundaries $id) "target" $target) }}
{{- $objectives = append $objectives (dict "labels" (merge (dict "slo" $id) $of) "share" $slo.latencyShare) }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:slo_boundary" "value" 1 "labels" (merge (dict "slo" $id "le" $le) $of)) | fromJson) }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:slo_target_seconds" "value" $target "labels" (merge (dict "slo" $id) $of)) | fromJson) }}
{{- end }}
{{- end }}
{{- range $objectives }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:slo_objective" "value" .share "labels" .labels) | fromJson) }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:slo_window_hours" "value" (mul 24 (int $slo.windowDays)) "labels" .labels) | fromJson) }}
{{- end }}
{{- $rules | toJson }}
{{- end }}

{{- /* The boundary at or above a target as the label `le` has it; empty if there is none. */ -}}
{{- define "platform.boundary" -}}
{{- include "platform.arguments" (dict "template" "platform.boundary" "given" . "names" (list "boundaries" "target")) }}
{{- $target := .target | float64 }}
{{- $found := "" }}
{{- range .boundaries }}
{{- if and (not $found) (ge (float64 .) $target) }}
{{- $found = . }}
{{- end }}
{{- end }}
{{- $found }}
{{- end }}
