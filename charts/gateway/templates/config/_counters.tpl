{{- /* Counters of the tenants in stick tables; metrics.lua serves them. Without `expire` an entry stays, and both tables have
       room for every key that the values allow. */ -}}

{{- /* Reasons of refused requests in the order of their counters: the codes of the errors, as JSON. */ -}}
{{- define "gateway.reasons" -}}
{{- $reasons := list }}
{{- range .errors.gateway }}
{{- $reasons = append $reasons .code }}
{{- end }}
{{- $reasons | uniq | sortAlpha | toJson }}
{{- end }}

{{- /* Responses count for tenant, model and version, by class of the status. */ -}}
{{- define "gateway.countResponses" -}}
http-after-response sc-inc-gpc(0,1) if { status 200:299 }
http-after-response allow if { status lt 400 }
http-after-response sc-inc-gpc(1,1) if { status 400:499 }
http-after-response sc-inc-gpc(2,1) if { status ge 500 }
# A client without a valid key keeps no connection.
http-after-response set-header connection close if { status 401 } !{ var(txn.key) -m found }
{{- end }}

{{- /* Refused requests count for the tenant, or for `-` without a valid key. These rules are the last ones for responses,
       because others skip them. */ -}}
{{- define "gateway.countRefusals" -}}
{{ include "gateway.countResponses" . }}
http-after-response set-var(txn.reason) res.hdr(x-rayhelm-reason)
http-after-response allow unless { var(txn.reason) -m found }
http-after-response del-header x-rayhelm-reason
{{- range $index, $reason := include "gateway.reasons" . | fromJsonArray }}
http-after-response sc-inc-gpc({{ $index }},0) if { var(txn.reason) -m str {{ $reason }} }
{{- end }}
{{- end }}

{{- define "gateway.configTenants" -}}
{{- $series := 0 }}
{{- range $name, $tenant := .v.tenants }}
{{- range $tenant.models | uniq }}
{{- $series = add $series (len (get $.v.models .).versions) }}
{{- end }}
{{- end -}}
backend tenants
  stick-table type string len 64 size {{ mul 2 (add 1 (len .v.tenants) (len .v.remoteGateways)) }} store gpc({{ include "gateway.reasons" . | fromJsonArray | len }}),conn_cur

# Requests by tenant, model and version.
backend requests
  stick-table type string len 512 size {{ mul 2 (max 1 $series) }} store gpc(3)
{{- end }}
