{{- /* `hub` or `bucket` for a model that the Job downloads. A bucket without a revision is read by Ray in each pod. */ -}}
{{- define "ray-service.downloadedFrom" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.downloadedFrom" "given" . "names" (list "source" "revision")) -}}
{{- if include "ray-service.isHubId" .source }}hub{{ else if and .revision (contains "://" .source) }}bucket{{ end }}
{{- end }}

{{- define "ray-service.isBucket" -}}
{{- if regexMatch "^(s3://[a-z0-9][a-z0-9.-]+[a-z0-9]|gs://[a-z0-9][a-z0-9._-]+[a-z0-9]|(azure|abfss)://[a-z0-9-]{3,63}@[a-z0-9]{3,24}([.][a-z0-9-]+)*[.](blob|dfs)([.][a-z0-9-]+)+)(/[A-Za-z0-9_][A-Za-z0-9._=-]*)*$" . }}true{{ end }}
{{- end }}

{{- /* What one Secret of credentials reads: `s3`, `gs`, or the host of an account of Azure. */ -}}
{{- define "ray-service.store" -}}
{{- if regexMatch "^(s3|gs)://" . }}{{ splitList ":" . | first }}{{ else }}{{ regexReplaceAll "^[a-z]+://[^@]+@([a-z0-9]+)[.].*$" . "${1}" }}{{ end }}
{{- end }}

{{- /* Path of a downloaded model; each revision has its own. */ -}}
{{- define "ray-service.downloadPath" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.downloadPath" "given" . "names" (list "v" "source" "revision")) -}}
{{ .v.weights.mountPath }}/{{ .source | replace "://" "/" }}/{{ .revision | default "main" }}
{{- end }}

{{- /* Whether the Job downloads from `hub` or `bucket`. */ -}}
{{- define "ray-service.downloadsFrom" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.downloadsFrom" "given" . "names" (list "v" "from")) -}}
{{- range include "ray-service.downloads" .v | fromJsonArray }}
{{- if eq .from $.from }}true{{ end }}
{{- end }}
{{- end }}
