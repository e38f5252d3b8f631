{{- /* Scheduling settings. Kubernetes checks them only when a pod is created, or never: a label that no node has is
       no error. */ -}}
{{- define "ray-service.validateNodes" -}}
{{- $v := . }}
{{- include "ray-service.validateTolerations" (dict "v" $v "path" (list "head") "tolerations" .head.tolerations) }}
{{- range $name, $group := .workerGroups }}
{{- include "ray-service.validateTolerations" (dict "v" $v "path" (list "workerGroups" $name) "tolerations" $group.tolerations) }}
{{- include "ray-service.validateSpread" (dict "v" $v "name" $name "group" $group) }}
{{- range $key := list "gpu" "rdma" }}
{{- $resource := get (get $group $key) "resource" }}
{{- if hasPrefix "requests." $resource }}
{{- include "ray-service.refuse" (dict "v" $v "id" "resource-quota-name" "words" (dict "group" $name "key" $key "name" $resource "resource" (trimPrefix "requests." $resource))) }}
{{- end }}
{{- end }}
{{- if and (eq $group.gpu.vendor "intel") $group.gpu.product (not (regexMatch "^(Flex|Max)_[0-9]+$" (toString $group.gpu.product))) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "intel-product" "words" (dict "group" $name "product" $group.gpu.product)) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.validateTolerations" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateTolerations" "given" . "names" (list "v" "path" "tolerations")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $bad := list }}
{{- $kept := list }}
{{- range $i, $toleration := .tolerations }}
{{- $exists := eq (get . "operator") "Exists" }}
{{- $reasons := dict
      "without a key it must have the operator Exists, which tolerates every taint" (and (not (hasKey . "key")) (not $exists))
      "it has the operator Exists and a value" (and $exists (hasKey . "value") (ne (toString (get . "value")) ""))
      "it has tolerationSeconds, which need the effect NoExecute" (and (hasKey . "tolerationSeconds") (ne (get . "effect") "NoExecute")) }}
{{- $isGood := true }}
{{- range $why, $holds := $reasons }}
{{- if $holds }}
{{- $isGood = false }}
{{- $bad = append $bad (dict "name" (printf "entry %d" (add1 $i)) "why" $why) }}
{{- end }}
{{- end }}
{{- $kept = $isGood | ternary (append $kept $toleration) $kept }}
{{- end }}
{{- $one := dict "key" "example.com/pool" "operator" "Exists" "effect" "NoSchedule" }}
{{- $words := dict "path" $path "kept" ($kept | default (list $one) | toJson) }}
{{- include "ray-service.refuseEntries" (dict "v" $v "id" "toleration" "bad" $bad "words" $words) }}
{{- end }}

{{- define "ray-service.validateSpread" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateSpread" "given" . "names" (list "v" "name" "group")) -}}
{{- $v := .v }}
{{- $name := .name }}
{{- $group := .group }}
{{- $several := gt $group.numOfHosts 1.0 }}
{{- range $v.serve.applications }}
{{- range .models }}
{{- $ranks := mul .engine.tensorParallelSize .engine.pipelineParallelSize (get .engine "dataParallelSize" | default 1) }}
{{- if and (or (not .workerGroups) (has $name .workerGroups)) (eq .accelerator.kind "gpu") (gt (float64 $ranks) $group.gpu.count) }}
{{- $several = true }}
{{- end }}
{{- end }}
{{- end }}
{{- $bad := list }}
{{- range $place, $_ := $group.spread }}
{{- if and $several (ne $place "kubernetes.io/hostname") }}
{{- $bad = append $bad (dict "name" $place) }}
{{- end }}
{{- end }}
{{- include "ray-service.refuseEntries" (dict "v" $v "id" "spread-replica" "bad" $bad "given" $group.spread "words" (dict "group" $name)) }}
{{- end }}
