{{- /* One small request for each model, as a JSON list: the `test_request` of its task. */ -}}
{{- define "ray-service.testRequests" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.testRequests" "given" . "names" (list "root" "v")) -}}
{{- $requests := list }}
{{- $tasks := .root.Files.Get "files/tasks.json" | fromJson }}
{{- range $app := .v.serve.applications }}
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
