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
{{- $min := get $container.min $resource }}
{{- $max := get $container.max $resource }}
{{- $less := list }}
{{- $more := list }}
{{- range $all }}
{{- $asks := get . $resource }}
{{- $named := dict "name" (printf "%s (%s)" .who $asks) }}
{{- if and $min (gt (include "tenant.number" $min | float64) (include "tenant.number" $asks | float64)) }}
{{- $less = append $less $named }}
{{- end }}
{{- if and $max (lt (include "tenant.number" $max | float64) (include "tenant.number" $asks | float64)) }}
{{- $more = append $more $named }}
{{- end }}
{{- end }}
{{- $words := dict "resource" $resource "most" (get (first $all) $resource) "least" (get (last $all) $resource) "min" $min "max" $max }}
{{- include "tenant.refuseEntries" (dict "v" $v "id" "limit-range-min" "bad" $less "words" $words) }}
{{- include "tenant.refuseEntries" (dict "v" $v "id" "limit-range-max" "bad" $more "words" $words) }}
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
