{{- /* Sizes of the process. One buffer holds a complete JSON body, the headers and HAProxy's own records. */ -}}
{{- define "gateway.bufferBytes" -}}
{{ add .limits.bodyBytes .limits.headerBytes 32768 }}
{{- end }}

{{- /* Size of the copy of a request that the gateway may retry, unless the request is larger. */ -}}
{{- define "gateway.smallBufferBytes" -}}
{{ min 65536 (include "gateway.bufferBytes" . | int) }}
{{- end }}

{{- define "gateway.metricsConnections" -}}
100
{{- end }}

{{- define "gateway.threads" -}}
{{ max 1 (div (add (include "gateway.milliCpu" .resources.limits.cpu) 999) 1000) }}
{{- end }}

{{- define "gateway.milliCpu" -}}
{{- $cpu := toString . }}
{{- if hasSuffix "m" $cpu -}}
{{ trimSuffix "m" $cpu | int64 }}
{{- else -}}
{{ mulf 1000 ($cpu | float64) | ceil | int64 }}
{{- end }}
{{- end }}

{{- /* The largest `loadBalancing.prefixBytes` of all models. */ -}}
{{- define "gateway.prefixBytes" -}}
{{- $bytes := 0 }}
{{- range .models }}
{{- if eq .loadBalancing.kind "PrefixHash" }}
{{- $bytes = max $bytes (int .loadBalancing.prefixBytes) }}
{{- end }}
{{- end }}
{{- $bytes }}
{{- end }}
