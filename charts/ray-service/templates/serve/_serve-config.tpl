{{- /* serveConfigV2 as one dict, printed as indented JSON, so that policies and reviewers see one form only. */ -}}
{{- define "ray-service.serveConfig" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.serveConfig" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $serve := .v.serve }}
{{- $applications := list }}
{{- range $name, $app := $serve.applications }}
{{- $applications = append $applications (include "ray-service.llmApplication" (dict "root" $root "v" $.v "name" $name "application" $app) | fromJson) }}
{{- end }}
{{- range $name, $app := $serve.customApplications }}
{{- $applications = append $applications (include "ray-service.customApplication" (dict "v" $.v "name" $name "application" $app) | fromJson) }}
{{- end }}
{{- dict
      "proxy_location" "EveryNode"
      "http_options" (merge (include "ray-service.serveTlsOptions" .v | fromJson) (dict
        "host" "0.0.0.0"
        "port" $serve.port
        "request_timeout_s" $serve.requestTimeoutSeconds
        "keep_alive_timeout_s" $serve.keepAliveTimeoutSeconds))
      "logging_config" (dict
        "encoding" $serve.logging.encoding
        "log_level" $serve.logging.level
        "enable_access_log" $serve.logging.accessLog)
      "applications" $applications
    | toPrettyJson }}
{{- end }}

{{- /* An application of Ray Serve LLM. */ -}}
{{- define "ray-service.llmApplication" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.llmApplication" "given" . "names" (list "root" "v" "name" "application")) -}}
{{- $root := .root }}
{{- $values := .v }}
{{- $app := .application }}
{{- $configs := list }}
{{- $ranks := 1 }}
{{- $prefill := dict }}
{{- $longest := 0.0 }}
{{- range $id, $model := $app.models }}
{{- /* An ingress that stops before its models would interrupt their responses. */}}
{{- $longest = maxf $longest $model.gracefulShutdownSeconds }}
{{- $ranks = max $ranks (get $model.engine "dataParallelSize" | default 1 | int) }}
{{- $configs = append $configs (include "ray-service.llmConfig" (dict "v" $values "id" $id "model" $model "root" $root) | fromJson) }}
{{- if hasKey $model "prefill" }}
{{- $prefill = include "ray-service.prefillConfig" (dict "v" $values "id" $id "model" $model "root" $root) | fromJson }}
{{- end }}
{{- end }}
{{- $args := dict }}
{{- if ne $values.serve.dataPath "Direct" }}
{{- $args = include "ray-service.ingressArgs" (dict "application" $app "longest" $longest) | fromJson }}
{{- end }}
{{- $builder := "build_openai_app" }}
{{- if $prefill }}
{{- /* Takes one model: ray/llm/_internal/serve/serving_patterns/prefill_decode/builder.py, PDServingArgs. */}}
{{- $builder = "build_pd_openai_app" }}
{{- $_ := set $args "prefill_config" $prefill }}
{{- $_ := set $args "decode_config" (first $configs) }}
{{- else if gt $ranks 1 }}
{{- /* Takes one model: ray/llm/_internal/serve/serving_patterns/data_parallel/builder.py, DPOpenAiServingArgs. */}}
{{- $builder = "build_dp_openai_app" }}
{{- $_ := set $args "llm_config" (first $configs) }}
{{- else }}
{{- $_ := set $args "llm_configs" $configs }}
{{- end }}
{{- $built := dict
      "name" .name
      "route_prefix" $app.routePrefix
      "import_path" (printf "ray.serve.llm:%s" $builder)
      "args" $args }}
{{- if eq $values.serve.dataPath "Direct" }}
{{- /* HAProxy asks it until the next reload, and requests may wait in it for a replica. Ray has 2 s and 20 s. */}}
{{- $router := dict "name" "LLMRouter" "graceful_shutdown_wait_loop_s" 10 "graceful_shutdown_timeout_s" $values.serve.requestTimeoutSeconds }}
{{- $_ := set $built "deployments" (list $router) }}
{{- end }}
{{- $built | toJson }}
{{- end }}
