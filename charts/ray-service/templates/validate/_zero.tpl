{{- /* Scale to zero: what keeps a pod with GPUs, or lets no request in, when models have no replica. Takes the values. */ -}}
{{- define "ray-service.validateZero" -}}
{{- include "ray-service.validateKeptGpus" . }}
{{- include "ray-service.validateProxies" . }}
{{- if eq .upgrade.strategy "NewClusterWithIncrementalUpgrade" }}
{{- include "ray-service.validateIncrementalZero" . }}
{{- end }}
{{- end }}

{{- /* A replica that always runs, and needs no GPU, may not be on a worker that is to be removed. */ -}}
{{- define "ray-service.validateKeptGpus" -}}
{{- $v := . }}
{{- $freed := include "ray-service.freedGroups" . | fromJsonArray }}
{{- $without := list }}
{{- range $name, $group := .workerGroups }}
{{- if not .gpu.count }}
{{- $without = append $without $name }}
{{- end }}
{{- end }}
{{- $to := first (append $without "ingress") }}
{{- $new := dict
      "gpu" (dict "count" 0)
      "mountsWeights" false
      "shmSize" "1Gi"
      "resources" (dict "limits" (dict "cpu" 4 "memory" "8Gi") "requests" (dict "cpu" 1)) }}
{{- $words := dict "to" $to "group" ($without | empty | ternary $new (dict "gpu" (dict "count" 0))) "freed" (join ", " $freed) }}
{{- range $app, $_ := .serve.applications }}
{{- if and $freed (or (not .ingress.workerGroup) (has .ingress.workerGroup $freed)) }}
{{- $fix := dict "ingress" (dict "workerGroup" $to) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "zero-keeps-gpu" "words" (merge (dict "path" (list "serve" "applications" $app "ingress") "section" "applications" "app" $app "fixed" $fix) $words)) }}
{{- end }}
{{- end }}
{{- range $app, $_ := .serve.customApplications }}
{{- range $id, $_ := .deployments }}
{{- if and $freed .minReplicas .cpus (not .gpus) (or (not .workerGroup) (has .workerGroup $freed)) }}
{{- $fix := dict "deployments" (dict $id (dict "workerGroup" $to)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "zero-keeps-gpu" "words" (merge (dict "path" (list "serve" "customApplications" $app "deployments" $id) "section" "customApplications" "app" $app "fixed" $fix) $words)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* A worker has a Serve proxy only while it has a replica, and the head takes no requests. */ -}}
{{- define "ray-service.validateProxies" -}}
{{- $v := . }}
{{- $last := list }}
{{- $stays := not (empty .serve.applications) }}
{{- range $app, $_ := .serve.customApplications }}
{{- range $id, $_ := .deployments }}
{{- if .minReplicas }}
{{- $stays = true }}
{{- else }}
{{- $last = list "serve" "customApplications" $app "deployments" $id }}
{{- end }}
{{- end }}
{{- end }}
{{- if and $last (not $stays) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "zero-proxies" "words" (dict "path" $last)) }}
{{- end }}
{{- end }}

{{- define "ray-service.validateIncrementalZero" -}}
{{- $v := . }}
{{- range $app, $_ := .serve.applications }}
{{- range $id, $_ := .models }}
{{- include "ray-service.validateInitial" (dict "v" $v "path" (list "serve" "applications" $app "models" $id "autoscaling") "scaling" .autoscaling) }}
{{- end }}
{{- end }}
{{- range $app, $_ := .serve.customApplications }}
{{- range $id, $_ := .deployments }}
{{- include "ray-service.validateInitial" (dict "v" $v "path" (list "serve" "customApplications" $app "deployments" $id) "scaling" .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.validateInitial" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateInitial" "given" . "names" (list "v" "path" "scaling")) -}}
{{- with .scaling }}
{{- if and (not .minReplicas) (get . "initialReplicas") }}
{{- include "ray-service.refuse" (dict "v" $.v "id" "zero-incremental" "words" (dict "path" $.path "initial" .initialReplicas)) }}
{{- end }}
{{- end }}
{{- end }}
