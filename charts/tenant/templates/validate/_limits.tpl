{{- /* Containers whose requests no value sets. The largest requests first, the smallest last. */ -}}
{{- define "tenant.fixedContainers" -}}
- {who: KubeRay's init container wait-gcs-ready of every worker, cpu: 200m, memory: 256Mi}
- {who: the pod of ray-service's `helm test`, cpu: 100m, memory: 64Mi}
- {who: ray-service's init container wait-for-weights of every worker, cpu: 50m, memory: 64Mi}
{{- end }}

{{- define "tenant.validateLimits" -}}
{{- $v := . }}
{{- $claim := .limits.claim }}
{{- $container := .limits.container }}
{{- range $resource := list "cpu" "memory" }}
{{- $all := include "tenant.fixedContainers" . | fromYamlArray }}
{{- range $fixed := $all }}
{{- $words := dict "resource" $resource "who" $fixed.who "asks" (get $fixed $resource) }}
{{- $words = merge $words (dict "most" (get (first $all) $resource) "least" (get (last $all) $resource)) }}
{{- with get $container.min $resource }}
{{- if gt (include "tenant.number" . | float64) (include "tenant.number" (get $fixed $resource) | float64) }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-range-min" "words" (merge (dict "min" .) $words)) }}
{{- end }}
{{- end }}
{{- with get $container.max $resource }}
{{- if lt (include "tenant.number" . | float64) (include "tenant.number" (get $fixed $resource) | float64) }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-range-max" "words" (merge (dict "max" .) $words)) }}
{{- end }}
{{- end }}
{{- end }}
{{- $ladder := list }}
{{- range $step := list "min" "defaultRequest" "default" "max" }}
{{- with get (get $container $step) $resource }}
{{- $ladder = append $ladder (dict "step" $step "amount" .) }}
{{- end }}
{{- end }}
{{- include "tenant.validateLadder" (dict "v" $v "path" (printf "limits.container.%%s.%s" $resource) "steps" $ladder) }}
{{- end }}
{{- if and $claim.min $claim.max }}
{{- include "tenant.validateLadder" (dict "v" $v "path" "limits.claim.%s" "steps" (list (dict "step" "min" "amount" $claim.min) (dict "step" "max" "amount" $claim.max))) }}
{{- end }}
{{- end }}

{{- /* Fails where an amount is less than the one before it. Takes a dict: v, path, steps. */ -}}
{{- define "tenant.validateLadder" -}}
{{- include "tenant.arguments" (dict "template" "tenant.validateLadder" "given" . "names" (list "v" "path" "steps")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $below := dict }}
{{- range .steps }}
{{- if $below }}
{{- if lt (include "tenant.number" .amount | float64) (include "tenant.number" $below.amount | float64) }}
{{- include "tenant.refuse" (dict "v" $v "id" "limit-range-order" "words" (dict "low" (printf $path $below.step) "least" $below.amount "high" (printf $path .step) "most" .amount)) }}
{{- end }}
{{- end }}
{{- $below = . }}
{{- end }}
{{- end }}
