{{- /* Exporter and middleware for Serve, and the same endpoint for vLLM. The proxies decide what is sampled, unless the
       gateway did: with a ratio of Serve's own, replicas would sample requests that are not traced. `always_off` is for
       vLLM's own processes, which only trace the start of the engine; its span of a request is made in the replica. */ -}}
{{- define "ray-service.tracingEnv" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.tracingEnv" "given" . "names" (list "root" "tracing")) -}}
{{- if .tracing.enabled }}
{{- dict
      "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH" "rayhelm.runtime.tracing:middlewares"
      "RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH" "rayhelm.runtime.tracing:span_processors"
      "RAY_SERVE_TRACING_SAMPLING_RATIO" "0"
      "RAYHELM_TRACING_RATIO" (.tracing.samplingRatio | toString)
      "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" (include "ray-service.tracesUrl" .tracing)
      "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL" .tracing.protocol
      "OTEL_TRACES_SAMPLER" "always_off"
      "OTEL_SERVICE_NAME" (include "ray-service.name" .root)
      "OTEL_RESOURCE_ATTRIBUTES" (printf "service.namespace=%s" .root.Release.Namespace) | toJson }}
{{- else }}{}
{{- end }}
{{- end }}

{{- /* URL of the exporter: OTLP over HTTP has a path. Takes tracing. */ -}}
{{- define "ray-service.tracesUrl" -}}
{{- $has_path := regexMatch "^https?://[^/]+/." .endpoint }}
{{- if or $has_path (eq .protocol "grpc") }}{{ .endpoint }}{{ else }}{{ trimSuffix "/" .endpoint }}/v1/traces{{ end }}
{{- end }}
