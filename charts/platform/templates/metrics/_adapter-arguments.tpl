{{- /* A list as JSON. Takes `metrics`. */ -}}
{{- define "platform.adapterArguments" -}}
{{- $adapter := .adapter }}
{{- $certificate := list "--cert-dir=/var/run/serving-cert" }}
{{- if $adapter.tls.secretName }}
{{- $certificate = list "--tls-cert-file=/var/run/serving-cert/tls.crt" "--tls-private-key-file=/var/run/serving-cert/tls.key" }}
{{- end }}
{{- $own := list
  "--config=/etc/adapter/config.yaml"
  (printf "--prometheus-url=%s" .prometheusUrl)
  (printf "--secure-port=%d" (int $adapter.port))
  (printf "--metrics-relist-interval=%ds" (int $adapter.relistSeconds))
  (printf "--metrics-max-age=%ds" (mul 10 (int $adapter.relistSeconds)))
}}
{{- /* Numbers stay listed for ten lists: a scrape that fails takes none away. */ -}}
{{- concat $own $certificate | toJson }}
{{- end }}
