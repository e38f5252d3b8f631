{{- /* Sizes of the stick tables. */ -}}

{{- /* Reasons of refused requests in the order of their counters: the codes of the errors, as JSON. */ -}}
{{- define "gateway.reasons" -}}
{{- $reasons := list }}
{{- range .errors.gateway }}
{{- $reasons = append $reasons .code }}
{{- end }}
{{- $reasons | uniq | sortAlpha | toJson }}
{{- end }}

{{- define "gateway.tenantEntries" -}}
{{ mul 2 (add 1 (len .v.tenants) (len .v.remoteGateways)) }}
{{- end }}

{{- define "gateway.requestEntries" -}}
{{- $series := 0 }}
{{- range $tenant := .v.tenants }}
{{- range $tenant.models | uniq }}
{{- $series = add $series (len (get $.v.models .).versions) }}
{{- end }}
{{- end -}}
{{- /* Doubled from 64 on, so that another model for a tenant seldom needs another process. */ -}}
{{- $entries := 64 }}
{{- range until 24 }}
{{- if lt $entries (int (mul 2 $series)) }}
{{- $entries = int (mul 2 $entries) }}
{{- end }}
{{- end }}
{{- $entries }}
{{- end }}

{{- define "gateway.rateEntries" -}}
{{ mul 4 (add (len .v.tenants) (len .v.remoteGateways)) | max 64 }}
{{- end }}
