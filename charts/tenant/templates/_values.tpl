{{- /* The values, with every entry of a map completed by the defaults of the values model, validated, as JSON.
       Every template reads them through here, so none is rendered from values that break a rule. By way of JSON, because
       `--set` gives int64 and a file float64, which templates do not compare. */ -}}
{{- define "tenant.values" -}}
{{- include "tenant.refuseRenamed" . }}
{{- $defaults := include "tenant.defaults" . | fromJson }}
{{- $values := .Values | toJson | fromJson }}
{{- range $resource, $cards := $values.quota.gpus }}
{{- $_ := set $values.quota.gpus $resource (mergeOverwrite (dict "steady" $cards.planned) $cards) }}
{{- end }}
{{- range $name, $class := $values.quota.priorityClasses }}
{{- $_ := set $values.quota.priorityClasses $name (mergeOverwrite (deepCopy $defaults.PriorityClass) $class) }}
{{- end }}
{{- range $to, $destination := $values.networkPolicy.destinations }}
{{- $_ := set $values.networkPolicy.destinations $to (mergeOverwrite (deepCopy $defaults.Destination) $destination) }}
{{- end }}
{{- range $name, $opening := $values.networkPolicy.openings }}
{{- $opening := mergeOverwrite (deepCopy $defaults.Opening) $opening }}
{{- range $caller, $peer := $opening.callers }}
{{- $_ := set $opening.callers $caller (mergeOverwrite (deepCopy $defaults.Peer) $peer) }}
{{- end }}
{{- range $to, $destination := $opening.destinations }}
{{- $_ := set $opening.destinations $to (mergeOverwrite (deepCopy $defaults.Destination) $destination) }}
{{- end }}
{{- $_ := set $values.networkPolicy.openings $name $opening }}
{{- end }}
{{- range $name, $secret := $values.externalSecrets }}
{{- $secret := mergeOverwrite (deepCopy $defaults.ExternalSecret) $secret }}
{{- range $key, $remote := $secret.keys }}
{{- $_ := set $secret.keys $key (mergeOverwrite (deepCopy $defaults.RemoteKey) $remote) }}
{{- end }}
{{- $_ := set $values.externalSecrets $name $secret }}
{{- end }}
{{- include "tenant.validate" (list . $values) }}
{{- $values | toJson }}
{{- end }}
