{{- /* The values, with every entry of a map completed by the defaults of the values model, validated, as JSON.
       Every template reads them through here, so none is rendered from values that break a rule. By way of JSON, because
       `--set` gives int64 and a file float64, which templates do not compare. */ -}}
{{- define "gateway.values" -}}
{{- include "gateway.refuseRenamed" . }}
{{- $defaults := include "gateway.defaults" . | fromJson }}
{{- $values := .Values | toJson | fromJson }}
{{- range $name, $tenant := $values.tenants }}
{{- $_ := set $values.tenants $name (mergeOverwrite (deepCopy $defaults.Tenant) $tenant) }}
{{- end }}
{{- range $name, $model := $values.models }}
{{- $model := mergeOverwrite (deepCopy $defaults.Model) $model }}
{{- $_ := set $model "path" ($model.path | default (printf "/%s" $name)) }}
{{- range $key, $version := $model.versions }}
{{- $version := mergeOverwrite (deepCopy $defaults.Version) $version }}
{{- range $site, $endpoint := $version.endpoints }}
{{- $_ := set $version.endpoints $site (mergeOverwrite (deepCopy $defaults.Endpoint) $endpoint) }}
{{- end }}
{{- $_ := set $model.versions $key $version }}
{{- end }}
{{- range $path, $operation := $model.operations }}
{{- $_ := set $model.operations $path (mergeOverwrite (deepCopy $defaults.Operation) $operation) }}
{{- end }}
{{- $_ := set $values.models $name $model }}
{{- end }}
{{- range $name, $peer := $values.networkPolicy.allowedClients }}
{{- $_ := set $values.networkPolicy.allowedClients $name (mergeOverwrite (deepCopy $defaults.AllowedClient) $peer) }}
{{- end }}
{{- include "gateway.validate" (list . $values) }}
{{- $values | toJson }}
{{- end }}
