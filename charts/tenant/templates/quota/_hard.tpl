{{- /* What the ResourceQuotas hold, as JSON. Each takes the values. */ -}}

{{- define "tenant.hard" -}}
{{- $quota := .quota }}
{{- $hard := dict "pods" (add $quota.pods.baseline $quota.pods.upgradeSurge) "requests.storage" $quota.storage.size }}
{{- range $resource, $gpus := $quota.gpus }}
{{- $_ := set $hard (printf "requests.%s" $resource) (add $gpus.baseline $gpus.upgradeSurge) }}
{{- end }}
{{- range $resource, $count := $quota.extendedResources }}
{{- if $count }}
{{- $_ := set $hard (printf "requests.%s" $resource) $count }}
{{- end }}
{{- end }}
{{- range $resource, $compute := $quota.compute }}
{{- $_ := set $hard (printf "requests.%s" $resource) (include "tenant.quantity" (dict "quantities" (list $compute.baseline $compute.upgradeSurge))) }}
{{- end }}
{{- range $name, $class := $quota.storage.classes }}
{{- $_ := set $hard (printf "%s.storageclass.storage.k8s.io/requests.storage" $name) $class.size }}
{{- end }}
{{- range $key, $name := include "tenant.objects" . | fromJson }}
{{- with get $quota.objects $key }}
{{- $_ := set $hard $name . }}
{{- end }}
{{- end }}
{{- $hard | toJson }}
{{- end }}

{{- /* GPU resources that the tenant was not given, and objects that it may not have. */ -}}
{{- define "tenant.denied" -}}
{{- $quota := .quota }}
{{- $hard := dict }}
{{- range $quota.gpuResources }}
{{- if not (hasKey $quota.gpus .) }}
{{- $_ := set $hard (printf "requests.%s" .) 0 }}
{{- end }}
{{- end }}
{{- range $key, $name := include "tenant.objects" . | fromJson }}
{{- if not (get $quota.objects $key) }}
{{- $_ := set $hard $name 0 }}
{{- end }}
{{- end }}
{{- $hard | toJson }}
{{- end }}

{{- /* Kubernetes' names of what `quota.objects` counts. */ -}}
{{- define "tenant.objects" -}}
{{- dict
      "rayServices" "count/rayservices.ray.io"
      "services" "services"
      "jobs" "count/jobs.batch"
      "configMaps" "configmaps"
      "secrets" "secrets"
      "persistentVolumeClaims" "persistentvolumeclaims"
      "serviceAccounts" "count/serviceaccounts"
      "networkPolicies" "count/networkpolicies.networking.k8s.io"
      "podDisruptionBudgets" "count/poddisruptionbudgets.policy"
      "podMonitors" "count/podmonitors.monitoring.coreos.com"
      "scrapeConfigs" "count/scrapeconfigs.monitoring.coreos.com"
      "loadBalancers" "services.loadbalancers"
      "nodePorts" "services.nodeports"
      "ingresses" "count/ingresses.networking.k8s.io"
      "gateways" "count/gateways.gateway.networking.k8s.io"
      "resourceClaims" "count/resourceclaims.resource.k8s.io" | toJson }}
{{- end }}

{{- /* The hard limits as YAML: counts whole, sums as Kubernetes itself writes them. Takes the JSON of one of those. */ -}}
{{- define "tenant.amounts" -}}
{{- range $name, $amount := fromJson . }}
{{ $name }}: {{ kindIs "string" $amount | ternary (include "tenant.quantity" (dict "quantities" (list $amount))) (int64 $amount | toString) | quote }}
{{- end }}
{{- end }}
