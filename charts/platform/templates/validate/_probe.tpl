{{- define "platform.validateProbe" -}}
{{- $v := . }}
{{- with .probe }}
{{- if .enabled }}
{{- if not .image.repository }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-image" "words" dict) }}
{{- end }}
{{- if not (or .image.tag .image.digest) }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-image-tag" "words" dict) }}
{{- end }}
{{- if not .fleet }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-fleet" "words" dict) }}
{{- end }}
{{- if not .apiServerCidrs }}
{{- include "platform.refuse" (dict "v" $v "id" "probe-api-server" "words" dict) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
