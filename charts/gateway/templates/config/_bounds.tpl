{{- /* Bounds of a tenant's requests to a model. */ -}}

{{- /* Whether a tenant has this bound. */ -}}
{{- define "gateway.hasBound" -}}
{{- include "gateway.arguments" (dict "template" "gateway.hasBound" "given" . "names" (list "v" "bound")) -}}
{{- $bound := .bound }}
{{- range .v.tenants }}
{{- if get . $bound }}true{{ end }}
{{- end }}
{{- end }}

{{- /* TENANT:MODEL OUTPUT BODY POLICY, with `none` without a bound. */ -}}
{{- define "gateway.mapBounds" -}}
{{- range $name, $tenant := .v.tenants }}
{{- range concat (keys $tenant.maxOutputTokens) (keys $tenant.maxBodyBytes) | uniq | sortAlpha }}
{{ $name }}:{{ . }} {{ hasKey $tenant.maxOutputTokens . | ternary (get $tenant.maxOutputTokens . | int64) "none" }} {{ hasKey $tenant.maxBodyBytes . | ternary (get $tenant.maxBodyBytes . | int64) "none" }} {{ $tenant.withoutMaxTokens }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gateway.frontendBounds" -}}
{{- $output := include "gateway.hasBound" (dict "v" .v "bound" "maxOutputTokens") | trim }}
{{- $body := include "gateway.hasBound" (dict "v" .v "bound" "maxBodyBytes") | trim }}
{{- if or $output $body }}
http-request set-var(txn.bounds) var(txn.tenant),concat(:,txn.model),map_str(bounds.map) if is_json
acl has_bounds var(txn.bounds) -m found
{{- end }}
{{- if $body }}
http-request set-var(txn.body_bound) var(txn.bounds),word(2,' ') if has_bounds !{ var(txn.bounds),word(2,' ') -m str none }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "prompt-exceeded") }} if { var(txn.body_bound) -m found }{{ if .v.remoteGateways }} !is_remote{{ end }} { req.body_len,sub(txn.body_bound) gt 0 }
{{- end }}
{{- if $output }}
http-request set-var(txn.output_bound) var(txn.bounds),word(1,' ') if has_bounds !{ var(txn.bounds),word(1,' ') -m str none }
acl has_output_bound var(txn.output_bound) -m found
http-request set-var(txn.output) var(txn.parsed),word(2,' ') if has_output_bound
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "output-invalid") }} if has_output_bound { var(txn.output) -m beg invalid }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "output-missing") }} if has_output_bound { var(txn.output) -m beg missing } { var(txn.bounds),word(3,' ') -m str Refuse }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "output-exceeded") }} if has_output_bound !{ var(txn.output) -m beg missing } { var(txn.output),sub(txn.output_bound) gt 0 }
{{- end }}
{{- end }}
