{{- /* What Ray's HAProxy cannot do, and what needs the ingress deployment, which the data path Direct has not. Takes the values. */ -}}
{{- define "ray-service.validateDataPath" -}}
{{- $v := . }}
{{- $path := .serve.dataPath }}
{{- if and (ne $path "Python") .serve.tls.secretName }}
{{- include "ray-service.refuse" (dict "v" $v "id" "data-path-tls" "words" (dict "dataPath" $path)) }}
{{- end }}
{{- if and (ne $path "Python") (semverCompare "<2.60.0" .ray.version) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "data-path-ray" "words" (dict "dataPath" $path "ray" .ray.version)) }}
{{- end }}
{{- if eq $path "Direct" }}
{{- range $name, $app := .serve.applications }}
{{- if gt (len $app.models) 1 }}
{{- include "ray-service.refuse" (dict "v" $v "id" "data-path-models" "words" (dict "app" $name "models" (keys $app.models | sortAlpha | join ", "))) }}
{{- end }}
{{- range $id, $model := $app.models }}
{{- if eq $model.router.kind "PrefixAffinity" }}
{{- include "ray-service.validateDirectRouter" (dict "v" $v "path" (list "serve" "applications" $name "models" $id)) }}
{{- end }}
{{- if $model.aliases }}
{{- include "ray-service.refuse" (dict "v" $v "id" "data-path-aliases" "words" (dict "path" (list "serve" "applications" $name "models" $id))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Each node can run the router that reads prompts. */ -}}
{{- define "ray-service.validateDirectRouter" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateDirectRouter" "given" . "names" (list "v" "path")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- if not (semverCompare "~2.60.0" $v.ray.version) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "data-path-router-ray" "words" (dict "path" $path "ray" $v.ray.version)) }}
{{- end }}
{{- if not $v.image.includesRayhelm }}
{{- include "ray-service.refuse" (dict "v" $v "id" "data-path-router" "words" (dict "path" $path "image" (list "image"))) }}
{{- end }}
{{- range $name, $group := $v.workerGroups }}
{{- if not (include "ray-service.hasRayhelm" (dict "image" $v.image "override" $group.image)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "data-path-router" "words" (dict "path" $path "image" (list "workerGroups" $name "image"))) }}
{{- end }}
{{- end }}
{{- end }}
