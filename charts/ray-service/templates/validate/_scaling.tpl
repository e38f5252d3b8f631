{{- /* Autoscaling of one deployment. */ -}}
{{- define "ray-service.validateScaling" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateScaling" "given" . "names" (list "v" "path" "scaling")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $scaling := .scaling }}
{{- include "ray-service.validateBounds" . }}
{{- if hasKey $scaling "initialReplicas" }}
{{- $begin := $scaling.initialReplicas }}
{{- if or (lt $begin $scaling.minReplicas) (gt $begin $scaling.maxReplicas) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "initial-replicas" "words" (dict "path" $path "initial" $begin "min" $scaling.minReplicas "max" $scaling.maxReplicas)) }}
{{- end }}
{{- end }}
{{- if le $scaling.lookBackPeriodSeconds 10.0 }}
{{- include "ray-service.refuse" (dict "v" $v "id" "look-back" "words" (dict "path" $path "seconds" $scaling.lookBackPeriodSeconds)) }}
{{- end }}
{{- if and (hasKey $scaling "downscaleToZeroDelaySeconds") (gt $scaling.minReplicas 0.0) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "downscale-to-zero" "words" (dict "path" $path "min" $scaling.minReplicas)) }}
{{- end }}
{{- end }}

{{- /* Target of the autoscaling of a model. */ -}}
{{- define "ray-service.validateTarget" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateTarget" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $model := .model }}
{{- $target := $model.autoscaling.targetOngoingRequests }}
{{- if and (hasKey $model "maxOngoingRequests") (lt (get $model "maxOngoingRequests" | float64) $target) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "ongoing-bounds" "words" (dict "path" $path "most" $model.maxOngoingRequests "target" $target "enough" (mulf 1.5 $target | ceil))) }}
{{- end }}
{{- if gt $target $model.engine.maxNumSeqs }}
{{- include "ray-service.refuse" (dict "v" $v "id" "target-sequences" "words" (dict "path" $path "target" $target "seqs" $model.engine.maxNumSeqs "less" (mulf 0.75 $model.engine.maxNumSeqs | floor | max 1))) }}
{{- end }}
{{- if eq $model.autoscaling.policy.kind "EngineQueue" }}
{{- include "ray-service.validateEngineQueue" . }}
{{- end }}
{{- end }}

{{- /* Requirements of the policy EngineQueue: image, Ray version, Prometheus. */ -}}
{{- define "ray-service.validateEngineQueue" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateEngineQueue" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- if not $v.serve.prometheus.url }}
{{- include "ray-service.refuse" (dict "v" $v "id" "policy-prometheus" "words" (dict "path" $path)) }}
{{- end }}
{{- if not $v.image.includesRayhelm }}
{{- include "ray-service.refuse" (dict "v" $v "id" "policy-image" "words" (dict "path" $path "image" (list "image"))) }}
{{- end }}
{{- range $name, $group := $v.workerGroups }}
{{- if not (include "ray-service.hasRayhelm" (dict "image" $v.image "override" $group.image)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "policy-image" "words" (dict "path" $path "image" (list "workerGroups" $name "image"))) }}
{{- end }}
{{- end }}
{{- if semverCompare "<2.60.0" $v.ray.version }}
{{- include "ray-service.refuse" (dict "v" $v "id" "policy-ray" "words" (dict "path" $path "ray" $v.ray.version)) }}
{{- end }}
{{- $api := $v.networkPolicy.prometheusApi }}
{{- if and $v.networkPolicy.enabled (not (or (include "ray-service.peer" $api.peer) $api.cidrs)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "policy-egress" "words" (dict "path" $path)) }}
{{- end }}
{{- end }}

{{- /* `true` if the policy of a model queries Prometheus, else empty. Takes the values. */ -}}
{{- define "ray-service.queriesPrometheus" -}}
{{- range .serve.applications }}
{{- range .models }}
{{- if eq .autoscaling.policy.kind "EngineQueue" }}true{{ end }}
{{- end }}
{{- end }}
{{- end }}
