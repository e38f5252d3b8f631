{{- /* serveConfigV2 as one dict, printed as JSON that people can read: policies and reviewers see one form only.
       Takes (list root values). */ -}}
{{- define "ray-service.serveConfig" -}}
{{- $root := index . 0 }}
{{- $serve := (index . 1).serve }}
{{- $applications := list }}
{{- range $name, $app := $serve.applications }}
{{- $applications = append $applications (include "ray-service.llmApplication" (list $root (index $ 1) $name $app) | fromJson) }}
{{- end }}
{{- range $name, $app := $serve.customApplications }}
{{- $applications = append $applications (include "ray-service.customApplication" (list $name $app) | fromJson) }}
{{- end }}
{{- dict
      "proxy_location" "EveryNode"
      "http_options" (dict
        "host" "0.0.0.0"
        "port" $serve.port
        "request_timeout_s" $serve.requestTimeoutSeconds
        "keep_alive_timeout_s" $serve.keepAliveTimeoutSeconds)
      "logging_config" (dict
        "encoding" $serve.logging.encoding
        "log_level" $serve.logging.level
        "enable_access_log" $serve.logging.accessLog)
      "applications" $applications
    | toPrettyJson }}
{{- end }}

{{- /* An application of Ray Serve LLM. Takes (list root values name application). */ -}}
{{- define "ray-service.llmApplication" -}}
{{- $root := index . 0 }}
{{- $values := index . 1 }}
{{- $app := index . 3 }}
{{- $configs := list }}
{{- range $id, $model := $app.models }}
{{- $configs = append $configs (include "ray-service.llmConfig" (list $values $id $model) | fromJson) }}
{{- end }}
{{- dict
      "name" (index . 2)
      "route_prefix" $app.routePrefix
      "import_path" "ray.serve.llm:build_openai_app"
      "args" (dict
        "llm_configs" $configs
        "ingress_deployment_config" (dict "autoscaling_config" (dict
          "min_replicas" $app.ingress.minReplicas
          "max_replicas" $app.ingress.maxReplicas
          "target_ongoing_requests" $app.ingress.targetOngoingRequests)))
    | toJson }}
{{- end }}

{{- /* An application of the user's own. Takes (list name application). */ -}}
{{- define "ray-service.customApplication" -}}
{{- $app := index . 1 }}
{{- $config := dict "name" (index . 0) "route_prefix" $app.routePrefix "import_path" $app.importPath "args" $app.args }}
{{- if $app.env }}
{{- $_ := set $config "runtime_env" (dict "env_vars" (include "ray-service.texts" $app.env | fromJson)) }}
{{- end }}
{{- $deployments := list }}
{{- range $name, $d := $app.deployments }}
{{- $actor := dict "num_cpus" $d.cpus "num_gpus" $d.gpus }}
{{- with $d.workerGroup }}
{{- $_ := set $actor "resources" (dict (include "ray-service.groupResource" .) 0.001) }}
{{- end }}
{{- $deployment := dict
      "name" $name
      "ray_actor_options" $actor
      "max_ongoing_requests" $d.maxOngoingRequests
      "graceful_shutdown_timeout_s" $d.gracefulShutdownSeconds
      "autoscaling_config" (dict
        "min_replicas" $d.minReplicas
        "max_replicas" $d.maxReplicas
        "target_ongoing_requests" $d.targetOngoingRequests) }}
{{- with $d.userConfig }}
{{- $_ := set $deployment "user_config" . }}
{{- end }}
{{- $deployments = append $deployments $deployment }}
{{- end }}
{{- with $deployments }}
{{- $_ := set $config "deployments" . }}
{{- end }}
{{- $config | toJson }}
{{- end }}

{{- /* A map of texts, in which YAML may have seen numbers, as texts. */ -}}
{{- define "ray-service.texts" -}}
{{- $texts := dict }}
{{- range $key, $value := . }}
{{- $_ := set $texts $key (kindIs "string" $value | ternary $value ($value | toJson)) }}
{{- end }}
{{- $texts | toJson }}
{{- end }}
