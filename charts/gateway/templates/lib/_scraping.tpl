{{- /* Generated from charts/lib/scraping.tpl by `make generate`. Do not edit. */ -}}
{{- /* How Prometheus finds pods. All kinds give a series the same labels: namespace, pod, container, endpoint, and the pod
       labels that queries sum by. */ -}}

{{- /* Relabeling rules of one kind of target as a JSON list, in the words of prometheus.yml. Takes a dict: label (of the
       pods, as Prometheus writes it), names (its values), ports (regular expression of port names), copied (regular
       expression of the pod labels that the series get; empty for none), path (of the metrics; empty for /metrics). */ -}}
{{- define "gateway.scrapeRules" -}}
{{- include "gateway.arguments" (dict "template" "gateway.scrapeRules" "given" . "names" (list "label" "names" "ports" "copied" "path")) -}}
{{- $pod := "__meta_kubernetes_pod" }}
{{- $rules := list
  (dict "action" "keep" "source_labels" (list (printf "%s_label_%s" $pod .label)) "regex" (join "|" .names))
  (dict "action" "keep" "source_labels" (list (printf "%s_container_port_name" $pod)) "regex" .ports)
  (dict "action" "drop" "source_labels" (list (printf "%s_phase" $pod)) "regex" "Succeeded|Failed")
  (dict "action" "drop" "source_labels" (list (printf "%s_label_ray_io_node_type" $pod)) "regex" "redis-cleanup") }}
{{- with .copied }}
{{- $rules = append $rules (dict "action" "labelmap" "regex" (printf "%s_label_(%s)" $pod .)) }}
{{- end }}
{{- range $target, $source := dict "namespace" "__meta_kubernetes_namespace" "pod" (printf "%s_name" $pod) "container" (printf "%s_container_name" $pod) "endpoint" (printf "%s_container_port_name" $pod) }}
{{- $rules = append $rules (dict "target_label" $target "source_labels" (list $source)) }}
{{- end }}
{{- /* Two paths of one port would otherwise have the same labels. */ -}}
{{- with .path }}
{{- $rules = append $rules (dict "target_label" "metrics_path" "replacement" .) }}
{{- end }}
{{- toJson $rules }}
{{- end }}

{{- /* The rules of the values as keys of an endpoint or a ScrapeConfig. Takes a dict: scraping, and optionally own (rules before
       them). */ -}}
{{- define "gateway.relabelings" -}}
{{- include "gateway.arguments" (dict "template" "gateway.relabelings" "given" . "names" (list "scraping")) }}
{{- with concat (get . "own" | default list) (get .scraping "relabelings" | default list) }}
relabelings:
  {{- range . }}
  - {{ toJson . }}
  {{- end }}
{{- end }}
{{- with get .scraping "metricRelabelings" }}
metricRelabelings:
  {{- range . }}
  - {{ toJson . }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* The spec of a ScrapeConfig. Takes a dict: scraping, namespaces, interval, path (empty for /metrics), selector (of the pods, as
       text; empty for all), rules (of lib.scrapeRules). */ -}}
{{- define "gateway.scrapeConfigSpec" -}}
{{- include "gateway.arguments" (dict "template" "gateway.scrapeConfigSpec" "given" . "names" (list "scraping" "namespaces" "interval" "path" "selector" "rules")) -}}
scrapeInterval: {{ .interval }}
{{- with .path }}
metricsPath: {{ . }}
{{- end }}
kubernetesSDConfigs:
  - role: Pod
    namespaces: {names: {{ toJson .namespaces }}}
    {{- with .selector }}
    selectors: [{role: Pod, label: {{ quote . }}}]
    {{- end }}
{{- include "gateway.relabelings" (dict "scraping" .scraping "own" (.rules | replace `"source_labels":` `"sourceLabels":` | replace `"target_label":` `"targetLabel":` | fromJsonArray)) }}
{{- end }}

{{- /* Annotations of a pod that is scraped by them. Takes a dict: port. */ -}}
{{- define "gateway.scrapeAnnotations" -}}
{{- include "gateway.arguments" (dict "template" "gateway.scrapeAnnotations" "given" . "names" (list "port")) -}}
prometheus.io/scrape: "true"
prometheus.io/port: {{ int .port | quote }}
prometheus.io/path: /metrics
{{- end }}
