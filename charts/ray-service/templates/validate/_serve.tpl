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
{{- if and .serve.tls.secretName (eq .upgrade.strategy "NewClusterWithIncrementalUpgrade") }}
{{- include "ray-service.refuse" (dict "v" $v "id" "serve-tls-incremental" "words" dict) }}
{{- end }}
{{- include "ray-service.validateDataPath" . }}
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
{{- include "ray-service.validateBounds" (dict "v" $v "path" (list "serve" "applications" $name "ingress") "scaling" $app.ingress) }}
{{- with $app.ingress.workerGroup }}
{{- include "ray-service.validateGroup" (dict "v" $v "path" (list "serve" "applications" $name "ingress") "group" .) }}
{{- end }}
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
{{- $hub := list "serve" "customApplications" $name "hubModels" }}
{{- range $source, $revision := $app.hubModels }}
{{- include "ray-service.validateRevision" (dict "v" $v "path" $hub "field" "model" "pin" $source "source" $source "revision" $revision) }}
{{- end }}
{{- range $id, $deployment := $app.deployments }}
{{- $path := list "serve" "customApplications" $name "deployments" $id }}
{{- include "ray-service.validateScaling" (dict "v" $v "path" $path "scaling" $deployment) }}
{{- with $deployment.workerGroup }}
{{- include "ray-service.validateGroup" (dict "v" $v "path" $path "group" .) }}
{{- end }}
{{- $groups := $deployment.workerGroup | empty | ternary (keys $v.workerGroups) (list $deployment.workerGroup) }}
{{- include "ray-service.validateDrain" (dict "v" $v "path" $path "groups" $groups "seconds" $deployment.gracefulShutdownSeconds) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.validateBounds" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateBounds" "given" . "names" (list "v" "path" "scaling")) -}}
{{- $bounds := .scaling }}
{{- if gt $bounds.minReplicas $bounds.maxReplicas }}
{{- include "ray-service.refuse" (dict "v" .v "id" "autoscaling-bounds" "words" (dict "path" .path "min" $bounds.minReplicas "max" $bounds.maxReplicas)) }}
{{- end }}
{{- end }}

{{- define "ray-service.validateGroup" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateGroup" "given" . "names" (list "v" "path" "group")) -}}
{{- $groups := .v.workerGroups }}
{{- if not (hasKey $groups .group) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "worker-group-unknown" "words" (dict "path" .path "group" .group "groups" (keys $groups | sortAlpha | join ", "))) }}
{{- end }}
{{- end }}
