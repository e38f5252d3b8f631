{{- /* A custom application. */ -}}
{{- define "ray-service.customApplication" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.customApplication" "given" . "names" (list "v" "name" "application")) -}}
{{- $values := .v }}
{{- $app := .application }}
{{- $config := dict "name" .name "route_prefix" $app.routePrefix "import_path" $app.importPath "args" $app.args }}
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
      "autoscaling_config" (include "ray-service.autoscaling" (dict "v" $values "scaling" $d) | fromJson) }}
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
