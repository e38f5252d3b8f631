{{- /* The values, with every entry of a map completed by the defaults of the values model, validated, as JSON.
       Every template reads them through here, so none is rendered from values that break a rule. By way of JSON, because
       `--set` gives int64 and a file float64, which templates do not compare. */ -}}
{{- define "ray-service.values" -}}
{{- include "ray-service.refuseRenamed" . }}
{{- $defaults := include "ray-service.defaults" . | fromJson }}
{{- $values := .Values | toJson | fromJson }}
{{- range $name, $group := $values.workerGroups }}
{{- $group := mergeOverwrite (deepCopy $defaults.WorkerGroup) $group }}
{{- range $place, $spread := $group.spread }}
{{- $_ := set $group.spread $place (mergeOverwrite (deepCopy $defaults.Spread) $spread) }}
{{- end }}
{{- $_ := set $values.workerGroups $name $group }}
{{- end }}
{{- range $name, $app := $values.serve.applications }}
{{- $app := mergeOverwrite (deepCopy $defaults.ServeApplication) (dict "routePrefix" (printf "/%s" $name)) $app }}
{{- range $id, $model := $app.models }}
{{- $_ := set $app.models $id (mergeOverwrite (deepCopy $defaults.ServedModel) $model) }}
{{- end }}
{{- $_ := set $values.serve.applications $name $app }}
{{- end }}
{{- range $name, $app := $values.serve.customApplications }}
{{- $app := mergeOverwrite (deepCopy $defaults.CustomApplication) (dict "routePrefix" (printf "/%s" $name)) $app }}
{{- range $id, $deployment := $app.deployments }}
{{- $_ := set $app.deployments $id (mergeOverwrite (deepCopy $defaults.CustomDeployment) $deployment) }}
{{- end }}
{{- $_ := set $values.serve.customApplications $name $app }}
{{- end }}
{{- range $name, $peer := $values.networkPolicy.allowedGateways }}
{{- $_ := set $values.networkPolicy.allowedGateways $name (mergeOverwrite (deepCopy $defaults.Peer) $peer) }}
{{- end }}
{{- range $name, $egress := $values.networkPolicy.egress }}
{{- $_ := set $values.networkPolicy.egress $name (mergeOverwrite (deepCopy $defaults.Egress) $egress) }}
{{- end }}
{{- include "ray-service.validate" (list . $values) }}
{{- $values | toJson }}
{{- end }}
