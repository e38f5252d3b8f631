{{- /* One small request for each model, as a JSON list: the `test_request` of its task. Takes (list root values). */ -}}
{{- define "ray-service.testRequests" -}}
{{- $requests := list }}
{{- $tasks := (index . 0).Files.Get "files/tasks.json" | fromJson }}
{{- range $app := (index . 1).serve.applications }}
{{- $root := trimSuffix "/" $app.routePrefix }}
{{- range $id, $model := $app.models }}
{{- with (get $tasks $model.task).test_request }}
{{- $body := hasKey . "body" | ternary (merge (dict "model" $id) (.body | default dict) | toJson) "" }}
{{- $requests = append $requests (dict "path" (printf "%s%s" $root (.path | replace "{model}" $id)) "body" $body) }}
{{- end }}
{{- end }}
{{- end }}
{{- $requests | toJson }}
{{- end }}
