{{- define "ray-service.validateServe" -}}
{{- $v := . }}
{{- $custom := .serve.customApplications }}
{{- if not (or .serve.applications $custom) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "applications-missing" "words" dict) }}
{{- end }}
{{- $port := int .serve.port }}
{{- if or (has $port (list 6379 8080 8265 10001 44217 44227 52365)) (and (ge $port 10002) (le $port 19999)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "serve-port" "words" (dict "port" $port)) }}
{{- end }}
{{- $routes := list }}
{{- range $section := list "applications" "customApplications" }}
{{- range $name, $app := get $v.serve $section }}
{{- if has $app.routePrefix $routes }}
{{- include "ray-service.refuse" (dict "v" $v "id" "route-duplicate" "words" (dict "route" $app.routePrefix "section" $section "name" $name)) }}
{{- end }}
{{- $routes = append $routes $app.routePrefix }}
{{- end }}
{{- end }}
{{- range $name, $app := .serve.applications }}
{{- if hasKey $custom $name }}
{{- include "ray-service.refuse" (dict "v" $v "id" "application-duplicate" "words" (dict "name" $name "application" (pick (get $custom $name) "importPath" "args" "deployments"))) }}
{{- end }}
{{- include "ray-service.validateBounds" (list $v (list "serve" "applications" $name "ingress") $app.ingress) }}
{{- $deployments := list }}
{{- range $id, $model := $app.models }}
{{- $deployment := $id | replace "/" "--" | replace "." "_" }}
{{- if has $deployment $deployments }}
{{- $copy := dict "source" $model.source "engine" (pick $model.engine "maxModelLen" "maxNumSeqs" "maxNumBatchedTokens")
      "autoscaling" (pick $model.autoscaling "targetOngoingRequests") }}
{{- include "ray-service.refuse" (dict "v" $v "id" "model-id-duplicate" "words" (dict "app" $name "deployment" $deployment "id" $id "model" $copy)) }}
{{- end }}
{{- $deployments = append $deployments $deployment }}
{{- end }}
{{- end }}
{{- range $name, $app := $custom }}
{{- range $id, $deployment := $app.deployments }}
{{- $path := list "serve" "customApplications" $name "deployments" $id }}
{{- include "ray-service.validateScaling" (list $v $path $deployment) }}
{{- with $deployment.workerGroup }}
{{- include "ray-service.validateGroup" (list $v $path .) }}
{{- end }}
{{- $groups := $deployment.workerGroup | empty | ternary (keys $v.workerGroups) (list $deployment.workerGroup) }}
{{- include "ray-service.validateDrain" (list $v $path $groups $deployment.gracefulShutdownSeconds) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Takes (list values path bounds). */ -}}
{{- define "ray-service.validateBounds" -}}
{{- $bounds := index . 2 }}
{{- if gt $bounds.minReplicas $bounds.maxReplicas }}
{{- include "ray-service.refuse" (dict "v" (index . 0) "id" "autoscaling-bounds" "words" (dict "path" (index . 1) "min" $bounds.minReplicas "max" $bounds.maxReplicas)) }}
{{- end }}
{{- end }}

{{- /* Takes (list values path group). */ -}}
{{- define "ray-service.validateGroup" -}}
{{- $groups := (index . 0).workerGroups }}
{{- if not (hasKey $groups (index . 2)) }}
{{- include "ray-service.refuse" (dict "v" (index . 0) "id" "worker-group-unknown" "words" (dict "path" (index . 1) "group" (index . 2) "groups" (keys $groups | sortAlpha | join ", "))) }}
{{- end }}
{{- end }}
