{{- /* `true` if the image contains rayhelm; an image of a worker group has its own key. */ -}}
{{- define "ray-service.hasRayhelm" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.hasRayhelm" "given" . "names" (list "image" "override")) -}}
{{- $own := .override }}
{{- if ternary $own.includesRayhelm .image.includesRayhelm (or $own.repository $own.tag $own.digest | empty | not) }}true{{ end }}
{{- end }}

{{- /* `true` if rayhelm's routers can run: all images contain it, and have the Ray whose private names the routers use. Takes
       the values. */ -}}
{{- define "ray-service.haveRouters" -}}
{{- $found := and .image.includesRayhelm (semverCompare "~2.60.0" .ray.version) }}
{{- range .workerGroups }}
{{- $found = and $found (include "ray-service.hasRayhelm" (dict "image" $.image "override" .image) | eq "true") }}
{{- end }}
{{- if $found }}true{{ end }}
{{- end }}

{{- /* Classes of rayhelm that run inside Ray. A middleware of Serve's proxies ends an interrupted stream with an error: Ray
       Serve LLM alone ends it like a complete response. The engine counts tokens by tenant. */ -}}
{{- define "ray-service.imageEnv" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.imageEnv" "given" . "names" (list "image" "override")) -}}
{{- $ours := dict
      "RAY_SERVE_HTTP_PROXY_CALLBACK_IMPORT_PATH" "rayhelm.runtime.stream_errors:middlewares"
      "RAYLLM_VLLM_ENGINE_CLS" "rayhelm.runtime.token_usage.engine:TokenCountingEngine" }}
{{- ternary $ours dict (include "ray-service.hasRayhelm" . | eq "true") | toJson }}
{{- end }}
