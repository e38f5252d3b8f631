{{- /* What the values say about services and models as series: then one rule serves all of them. A list as JSON.
       `data`: files/prometheus-rules.json. */ -}}
{{- define "platform.planRules" -}}
{{- include "platform.arguments" (dict "template" "platform.planRules" "given" . "names" (list "values" "data")) }}
{{- $v := .values }}
{{- $data := .data }}
{{- $rules := list }}
{{- range $name, $service := $v.metrics.services }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:service_info" "value" 1 "labels" (dict "namespace" $service.namespace "rayhelm_dev_service" $name)) | fromJson) }}
{{- end }}
{{- range $name, $gateway := $v.metrics.gateways }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:gateway_info" "value" 1 "labels" (dict "namespace" $gateway.namespace "rayhelm_dev_gateway" $name)) | fromJson) }}
{{- end }}
{{- range $tenant, $keys := $v.prometheusRules.keysSecrets }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:gateway_keys_secret" "value" 1 "labels" (dict "namespace" $keys.namespace "secret" $keys.secretName "tenant" $tenant)) | fromJson) }}
{{- end }}
{{- range $v.prometheusRules.redisNamespaces }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:redis_info" "value" 1 "labels" (dict "namespace" .)) | fromJson) }}
{{- end }}
{{- range $service, $groups := $v.prometheusRules.gpuPrices }}
{{- $namespace := (get $v.metrics.services $service).namespace }}
{{- range $group, $price := $groups }}
{{- $rules = append $rules (include "platform.constant" (dict "name" "rayhelm:gpu_price:dollars_per_hour" "value" $price "labels" (dict "namespace" $namespace "rayhelm_dev_service" $service "rayhelm_dev_worker_group" $group)) | fromJson) }}
{{- end }}
{{- end }}
{{- $seen := dict }}
{{- range $name, $model := $v.prometheusRules.models }}
{{- $rules = concat $rules (include "platform.modelRules" (dict "values" $v "data" $data "name" $name "model" $model "seen" $seen) | fromJsonArray) }}
{{- end }}
{{- with $v.prometheusRules.cluster }}
{{- range $rules }}
{{- $_ := set .labels "cluster" $v.prometheusRules.cluster }}
{{- end }}
{{- end }}
{{- $rules | toJson }}
{{- end }}

{{- /* A series with one value. */ -}}
{{- define "platform.constant" -}}
{{- include "platform.arguments" (dict "template" "platform.constant" "given" . "names" (list "name" "value" "labels")) }}
{{- dict "record" .name "expr" (printf "vector(%s)" (toJson .value)) "labels" .labels | toJson }}
{{- end }}
