{{- /* One small request for each model, as a JSON list. A transcription needs a sound file, so its model is only looked
       up, which does not notice a dead engine. Takes the values. */ -}}
{{- define "ray-service.testRequests" -}}
{{- $requests := list }}
{{- range $app := .serve.applications }}
{{- $root := trimSuffix "/" $app.routePrefix }}
{{- range $id, $model := $app.models }}
{{- $path := get (dict "chat" "/v1/completions" "embed" "/v1/embeddings" "rerank" "/v1/score" "transcribe" (printf "/v1/models/%s" $id)) $model.task }}
{{- $body := get (dict
      "chat" (dict "model" $id "prompt" "ping" "max_tokens" 1)
      "embed" (dict "model" $id "input" "ping")
      "rerank" (dict "model" $id "text_1" "ping" "text_2" "pong")) $model.task }}
{{- $requests = append $requests (dict "path" (printf "%s%s" $root $path) "body" (kindIs "map" $body | ternary ($body | toJson) "")) }}
{{- end }}
{{- end }}
{{- $requests | toJson }}
{{- end }}
