{{- /* What Prometheus scrapes that has no chart of ours, as a JSON list: part (of the name of its object), namespace, and
       arguments of scrapeRules. Takes the values, and `root` for the namespace of the release. */ -}}
{{- define "platform.scrapedOperators" -}}
{{- $scraping := .metrics.scraping }}
{{- $targets := list }}
{{- with $scraping.kuberayNamespace }}
{{- $targets = append $targets (dict "part" "kuberay-operator" "namespace" . "selector" "app.kubernetes.io/name=kuberay-operator" "label" "app_kubernetes_io_name" "names" (list "kuberay-operator") "ports" "http" "copied" "" "path" "") }}
{{- end }}
{{- if and .nvidia.enabled $scraping.dcgmExporter }}
{{- $targets = append $targets (dict "part" "dcgm-exporter" "namespace" .nvidia.namespace "selector" "app=nvidia-dcgm-exporter" "label" "app" "names" (list "nvidia-dcgm-exporter") "ports" "metrics" "copied" "" "path" "") }}
{{- end }}
{{- if .doctor.enabled }}
{{- $selector := include "platform.doctorSelector" .root | fromYaml }}
{{- $key := keys $selector | first }}
{{- $name := get $selector $key }}
{{- $targets = append $targets (dict "part" "doctor" "namespace" .root.Release.Namespace "selector" (printf "%s=%s" $key $name) "label" "rayhelm_dev_doctor" "names" (list $name) "ports" "metrics" "copied" "" "path" "") }}
{{- end }}
{{- $targets | toJson }}
{{- end }}

{{- /* Jobs of the ConfigMap as a JSON list: name, namespaces, and arguments of scrapeRules. Takes the values with
       `root`. */ -}}
{{- define "platform.scrapeJobs" -}}
{{- $m := .metrics }}
{{- $jobs := list }}
{{- range $job := list
  (dict "name" "rayhelm-services" "of" $m.services "label" "rayhelm_dev_service" "ports" "metrics|as-metrics|dash-metrics" "copied" "rayhelm_dev_(?:service|worker_group|tenant)" "path" "")
  (dict "name" "rayhelm-gateways" "of" $m.gateways "label" "rayhelm_dev_gateway" "ports" "metrics" "copied" "rayhelm_dev_gateway" "path" "")
  (dict "name" "rayhelm-gateway-tenants" "of" $m.gateways "label" "rayhelm_dev_gateway" "ports" "metrics" "copied" "rayhelm_dev_gateway" "path" "/metrics/tenants") }}
{{- $namespaces := list }}
{{- range $job.of }}
{{- $namespaces = append $namespaces .namespace }}
{{- end }}
{{- with $namespaces | uniq | sortAlpha }}
{{- $jobs = append $jobs (merge (dict "namespaces" . "names" (keys $job.of | sortAlpha)) $job) }}
{{- end }}
{{- end }}
{{- range include "platform.scrapedOperators" . | fromJsonArray }}
{{- $jobs = append $jobs (merge (dict "name" (printf "rayhelm-%s" .part) "namespaces" (list .namespace)) .) }}
{{- end }}
{{- $jobs | toJson }}
{{- end }}

{{- /* Jobs of the ConfigMap by file. The doctor has a file of its own: `rayhelm render` does not know it, and would see a
       changed file as drift. Takes the values with `root`. */ -}}
{{- define "platform.scrapeFiles" -}}
{{- $files := dict "rayhelm.yaml" list }}
{{- range include "platform.scrapeJobs" . | fromJsonArray }}
{{- $file := eq .name "rayhelm-doctor" | ternary "doctor.yaml" "rayhelm.yaml" }}
{{- $_ := set $files $file (append (get $files $file | default list) .) }}
{{- end }}
{{- toJson $files }}
{{- end }}

{{- define "platform.scrapeMetadata" -}}
{{- include "platform.arguments" (dict "template" "platform.scrapeMetadata" "given" . "names" (list "root" "part" "labels")) -}}
{{ include "platform.metadata" (dict "root" .root "namespace" .root.Release.Namespace "name" (include "platform.name" (dict "root" .root "part" .part))) }}
{{- with .labels }}
  {{- include "platform.textMap" . | nindent 2 }}
{{- end }}
{{- end }}
