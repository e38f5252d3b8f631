{{- /* GPUs by group, and of deployments that may run on any of several groups, at minReplicas and at maxReplicas; CPUs at
       minReplicas. Takes the values. */ -}}
{{- define "ray-service.neededResources" -}}
{{- $v := . }}
{{- $needed := dict "fewest" dict "most" dict "cpus" 0.0 "anywhere" (dict "fewest" 0.0 "most" 0.0) }}
{{- range $app, $_ := .serve.applications }}
{{- $_ := set $needed "cpus" (addf $needed.cpus .ingress.minReplicas) }}
{{- range $id, $_ := .models }}
{{- $bounds := include "ray-service.replicaBounds" . | fromJson }}
{{- $ranks := mul .engine.tensorParallelSize .engine.pipelineParallelSize (get .engine "dataParallelSize" | default 1) }}
{{- $onCpu := eq .accelerator.kind "cpu" }}
{{- /* Ray adds the replica's own CPUs to its first bundle. */}}
{{- $_ := set $needed "cpus" (addf $needed.cpus (mulf $bounds.minReplicas (addf (mulf .replicaCpus (get .engine "dataParallelSize" | default 1)) (ternary $ranks 0 $onCpu)))) }}
{{- if not $onCpu }}
{{- $path := list "serve" "applications" $app "models" $id }}
{{- include "ray-service.addNeeded" (dict "v" $v "needed" $needed "path" $path "groups" .workerGroups "gpus" (mulf $ranks .gpuFraction) "share" .gpuFraction "bounds" $bounds) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $app, $_ := .serve.customApplications }}
{{- range $id, $_ := .deployments }}
{{- $_ := set $needed "cpus" (addf $needed.cpus (mulf .minReplicas .cpus)) }}
{{- $path := list "serve" "customApplications" $app "deployments" $id }}
{{- include "ray-service.addNeeded" (dict "v" $v "needed" $needed "path" $path "groups" (compact (list .workerGroup)) "gpus" .gpus "share" .gpus "bounds" .) }}
{{- end }}
{{- end }}
{{- $needed | toJson }}
{{- end }}

{{- /* Replicas of a model with an engine: those that compute prompts have their own. Takes the model. */ -}}
{{- define "ray-service.replicaBounds" -}}
{{- $bounds := pick .autoscaling "minReplicas" "maxReplicas" }}
{{- with get . "prefill" }}
{{- $bounds = dict
      "minReplicas" (addf $bounds.minReplicas .autoscaling.minReplicas)
      "maxReplicas" (addf $bounds.maxReplicas .autoscaling.maxReplicas) }}
{{- end }}
{{- $bounds | toJson }}
{{- end }}

{{- /* Add one deployment. */ -}}
{{- define "ray-service.addNeeded" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.addNeeded" "given" . "names" (list "v" "needed" "path" "groups" "gpus" "share" "bounds")) -}}
{{- $v := .v }}
{{- $needed := .needed }}
{{- $groups := include "ray-service.groupsOf" (dict "v" $v "groups" .groups) | fromJsonArray }}
{{- $bounds := .bounds }}
{{- $part := divf .gpus (max 1 (len $groups)) }}
{{- range $name := $groups }}
{{- $_ := set $needed.fewest $name (addf (get $needed.fewest $name | default 0.0) (mulf $bounds.minReplicas $part)) }}
{{- $_ := set $needed.most $name (addf (get $needed.most $name | default 0.0) (mulf $bounds.maxReplicas $part)) }}
{{- include "ray-service.validateGpuFraction" (dict "v" $v "path" $.path "group" $name "share" $.share "replicas" $bounds.maxReplicas) }}
{{- end }}
{{- if and (not $groups) .gpus }}
{{- include "ray-service.addAnywhere" (dict "needed" $needed "gpus" .gpus "bounds" $bounds) }}
{{- end }}
{{- end }}

{{- /* CPUs that the ingress deployments of a group reserve at their maxReplicas: one for each replica. Takes a dict: v, group. */ -}}
{{- define "ray-service.ingressCpus" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.ingressCpus" "given" . "names" (list "v" "group")) -}}
{{- $need := 0.0 }}
{{- range .v.serve.applications }}
{{- if eq .ingress.workerGroup $.group }}
{{- $need = addf $need .ingress.maxReplicas }}
{{- end }}
{{- end }}
{{- $need }}
{{- end }}
