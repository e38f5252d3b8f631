{{- /* The values, with every entry of a map completed by the defaults of the values model, validated, as JSON.
       Every template reads them through here, so none is rendered from values that break a rule. By way of JSON, because
       `--set` gives int64 and a file float64, which templates do not compare. */ -}}
{{- define "platform.values" -}}
{{- include "platform.refuseRenamed" . }}
{{- $defaults := include "platform.defaults" . | fromJson }}
{{- $values := .Values | toJson | fromJson }}
{{- range $name, $class := $values.runtimeClasses }}
{{- $_ := set $values.runtimeClasses $name (mergeOverwrite (deepCopy $defaults.RuntimeClass) $class) }}
{{- end }}
{{- range $name, $pool := $values.nvidia.pools }}
{{- $_ := set $values.nvidia.pools $name (mergeOverwrite (deepCopy $defaults.NvidiaPool) $pool) }}
{{- end }}
{{- range $name, $pool := $values.intel.pools }}
{{- $_ := set $values.intel.pools $name (mergeOverwrite (deepCopy $defaults.IntelPool) $pool) }}
{{- end }}
{{- range $name, $rule := $values.metrics.rules }}
{{- $_ := set $values.metrics.rules $name (mergeOverwrite (deepCopy $defaults.Rule) $rule) }}
{{- end }}
{{- range $name, $scaler := $values.metrics.autoscalers }}
{{- $_ := set $values.metrics.autoscalers $name (mergeOverwrite (deepCopy $defaults.Autoscaler) $scaler) }}
{{- end }}
{{- include "platform.validate" (list . $values) }}
{{- $values | toJson }}
{{- end }}
