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
{{- $output := hasKey $tenant.maxOutputTokens . | ternary (get $tenant.maxOutputTokens . | int64) "none" }}
{{- $body := hasKey $tenant.maxBodyBytes . | ternary (get $tenant.maxBodyBytes . | int64) "none" }}
{{ $name }}:{{ . }} {{ $output }} {{ $body }} {{ $tenant.withoutMaxTokens }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gateway.checkBounds" }}
{{- $output := include "gateway.hasBound" (dict "v" .v "bound" "maxOutputTokens") | trim }}
{{- $body := include "gateway.hasBound" (dict "v" .v "bound" "maxBodyBytes") | trim }}
{{- if or $output $body }}
  http-request set-var(txn.bounds) var(txn.tenant),concat(:,txn.model),map_str(bounds.map) if is_json
  acl has_bounds var(txn.bounds) -m found
{{- end }}
{{- if $body }}
{{- $here := empty .v.remoteGateways | ternary "" " !is_remote" }}
  http-request set-var(txn.body_bound) var(txn.bounds),word(2,' ') if has_bounds !{ var(txn.bounds),word(2,' ') -m str none }
  acl has_body_bound var(txn.body_bound) -m found
  http-request return {{ get .answers "prompt-exceeded" }} if has_body_bound{{ $here }} { req.body_len,sub(txn.body_bound) gt 0 }
{{- end }}
{{- if $output }}
  http-request set-var(txn.output_bound) var(txn.bounds),word(1,' ') if has_bounds !{ var(txn.bounds),word(1,' ') -m str none }
  acl has_output_bound var(txn.output_bound) -m found
  http-request set-var(txn.output) var(txn.parsed),word(2,' ') if has_output_bound
  acl is_invalid_output var(txn.output) -m beg invalid
  acl is_missing_output var(txn.output) -m beg missing
  acl needs_output var(txn.bounds),word(3,' ') -m str Refuse
  http-request return {{ get .answers "output-invalid" }} if has_output_bound is_invalid_output
  http-request return {{ get .answers "output-missing" }} if has_output_bound is_missing_output needs_output
  acl is_above_output var(txn.output),sub(txn.output_bound) gt 0
  http-request return {{ get .answers "output-exceeded" }} if has_output_bound !is_missing_output is_above_output
{{- end }}
{{- end }}
