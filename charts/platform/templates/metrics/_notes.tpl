{{- define "platform.metricsNotes" -}}
{{- include "platform.arguments" (dict "template" "platform.metricsNotes" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $m := .v.metrics }}
{{- $adapter := $m.adapter }}
{{- $namespace := include "platform.adapterNamespace" . }}
{{- $name := include "platform.name" (dict "root" $root "part" "metrics") }}
{{- if or $m.services $m.gateways }}

Metrics for autoscaling: {{ include "platform.metricRules" (dict "root" $root "metrics" $m) | fromJson | keys | sortAlpha | join ", " }}
{{- if eq $adapter.kind "ConfigMap" }}
  as values of prometheus-adapter's own chart; add them to rules that it already has:
    kubectl get configmap {{ $name }} --namespace {{ $namespace }} --output 'jsonpath={.data.values\.yaml}' >rules.yaml
{{- end }}
{{- if ne $adapter.kind "None" }}
{{- if $m.gateways }}
Read a metric of the pods of a gateway:
  kubectl get --raw "/apis/custom.metrics.k8s.io/v1beta1/namespaces/{{ (get $m.gateways (keys $m.gateways | sortAlpha | first)).namespace }}/pods/*/haproxy_requests_in_flight"
{{- end }}
{{- if $m.services }}
{{- $service := keys $m.services | sortAlpha | first }}
Read a metric of a service:
  kubectl get --raw "/apis/external.metrics.k8s.io/v1beta1/namespaces/{{ (get $m.services $service).namespace }}/rayhelm_queue_length?labelSelector=rayhelm_dev_service%3D{{ $service }}"
{{- end }}
{{- end }}
{{- end }}
{{- if eq $m.scraping.kind "ConfigMap" }}

Mount the ConfigMap {{ include "platform.name" (dict "root" $root "part" "scrape") }} into Prometheus, and add its file to `scrape_config_files`.
{{- end }}
{{- if eq $m.scraping.kind "Annotations" }}

Scraped by annotations are services and gateways, without the metrics of tenants and of Ray's autoscaler.
{{- with $m.scraping.kuberayNamespace }}
Annotate the pods of the KubeRay operator with the values of its chart:
  {{ include "platform.upgrade" (dict "release" "kuberay-operator" "chart" "kuberay/kuberay-operator" "namespace" .) }} --set-string 'annotations.prometheus\.io/scrape=true,annotations.prometheus\.io/port=8080'
{{- end }}
NVIDIA's GPU operator annotates the Service of its exporter itself.
{{- end }}
{{- end }}
