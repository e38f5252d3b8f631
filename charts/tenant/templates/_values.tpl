{{- /* The values, with every entry of a map completed by the defaults of the values model, validated, as JSON.
       Every template reads them through here, so none is rendered from values that break a rule. By way of JSON, because
       `--set` gives int64 and a file float64, which templates do not compare. */ -}}
{{- define "tenant.values" -}}
{{- include "tenant.refuseRenamed" . }}
{{- $defaults := include "tenant.defaults" . | fromJson }}
{{- $values := .Values | toJson | fromJson }}
{{- range $resource, $gpus := $values.quota.gpus }}
{{- $_ := set $values.quota.gpus $resource (mergeOverwrite (dict "baseline" $gpus.planned) $gpus) }}
{{- end }}
{{- range $name, $class := $values.quota.priorityClasses }}
{{- $_ := set $values.quota.priorityClasses $name (mergeOverwrite (deepCopy $defaults.PriorityClass) $class) }}
{{- end }}
{{- range $name, $egress := $values.networkPolicy.egress }}
{{- $_ := set $values.networkPolicy.egress $name (mergeOverwrite (deepCopy $defaults.Egress) $egress) }}
{{- end }}
{{- range $name, $policy := $values.networkPolicy.extraPolicies }}
{{- $policy := mergeOverwrite (deepCopy $defaults.ExtraPolicy) $policy }}
{{- range $from, $peer := $policy.ingress.from }}
{{- $_ := set $policy.ingress.from $from (mergeOverwrite (deepCopy $defaults.Peer) $peer) }}
{{- end }}
{{- range $to, $target := $policy.egress.to }}
{{- $_ := set $policy.egress.to $to (mergeOverwrite (deepCopy $defaults.ExtraPolicyTarget) $target) }}
{{- end }}
{{- $_ := set $values.networkPolicy.extraPolicies $name $policy }}
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
