{{- /* URL and body of a request. */ -}}

{{- /* routes.map has every valid path, byte for byte. Paths are not normalized, so `//`, `%2e` and `..` match nothing. */ -}}
{{- define "gateway.frontendRoute" -}}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "http-version-unsupported") }} unless { req.ver 1.1 1.0 }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "host-missing") }} if { req.ver 1.1 } !{ req.fhdr_cnt(host) eq 1 }
http-request set-var(txn.route) path,map_str(routes.map)
acl has_route var(txn.route) -m found
{{- include "gateway.frontendOpenapi" (merge (dict "access" "Key") .) }}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "path-unknown") }} unless has_route
http-request set-var(txn.path_model) var(txn.route),word(4,' ')
acl has_path_model var(txn.path_model) -m found
# A path of a model that the tenant may not use gets the same response as one that does not exist.
http-request set-var(txn.path_access) var(txn.tenant),concat(:,txn.path_model),map_str(access.map) if has_path_model
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "path-unknown") }} if has_path_model !{ var(txn.path_access) -m found }
# It is cheaper to test that a variable exists than to compare it, and most requests have a JSON body.
http-request set-var(txn.json) bool(true) if { var(txn.route) -m beg "json " }
acl is_json var(txn.json) -m found
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "method-not-allowed" "header" "allow POST") }} if is_json !{ method POST }
http-request set-var(txn.allowed_method) var(txn.route),word(2,' ') unless is_json
http-request set-var(txn.method) method unless is_json
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "method-not-allowed" "header" "allow %[var(txn.allowed_method)]") }} if !is_json !{ var(txn.method),strcmp(txn.allowed_method) eq 0 }
http-request set-var(txn.operation) var(txn.route),word(3,' ')
http-request set-var(txn.body_kind) var(txn.route),word(1,' ') unless is_json
{{- if include "gateway.hasUploads" . | trim }}
http-request set-var(txn.stream) bool(true) if !is_json { var(txn.body_kind) -m str stream }
acl is_stream var(txn.stream) -m found
{{- end }}
# The list of models of the tenant.
{{- $parts := 1 }}
{{- range .v.tenants }}
{{- $parts = max $parts (include "gateway.listParts" (dict "v" $.v "tenant" .) | fromJsonArray | len) }}
{{- end }}
{{- $list := "var(txn.list0)" }}
{{- range $part := until (int $parts) }}
http-request set-var(txn.list{{ $part }}) var(txn.tenant),concat(:{{ $part }}),map_str(lists.map) if !is_json !has_path_model { var(txn.body_kind) -m str list }
{{- if $part }}
{{- $list = printf "%s,concat(,txn.list%d)" $list $part }}
{{- end }}
{{- end }}
http-request return status 200 content-type application/json lf-string '{"object":"list","data":[%[{{ $list }}]]}' if !is_json !has_path_model { var(txn.body_kind) -m str list }
{{- end }}

{{- /* A JSON body is read completely, within a size and a time, and only after the key was accepted. */ -}}
{{- define "gateway.frontendBody" -}}
{{- $limits := .v.limits -}}
{{- /* A remote gateway has added its salt, and `stream_options`. */}}
{{- $most := add $limits.bodyBytes (empty .v.remoteGateways | ternary 0 160) | int }}
http-request set-var(txn.length) req.fhdr(content-length) if is_json
{{- if include "gateway.hasUploads" . | trim }}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "length-required") }} if is_stream { var(txn.allowed_method) -m str POST } !{ req.fhdr_cnt(content-length) eq 1 }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "length-required") }} if is_stream { req.fhdr_cnt(transfer-encoding) gt 0 }
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "body-too-large") }} if is_stream { req.fhdr(content-length) -m int gt {{ int $limits.uploadBytes }} }
{{- end }}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "body-too-large") }} if is_json { var(txn.length) -m int gt {{ $most }} }
{{- include "gateway.frontendContentType" . | trim | nindent 0 }}
http-request wait-for-body time {{ int .v.timeouts.bodySeconds }}s if is_json
{{- include "gateway.frontendUpload" . | trim | nindent 0 }}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "body-too-large") }} if is_json { req.body_len gt {{ $most }} }
# The result is `ok OUTPUT MODEL PREFIX` or the name of an error. The converter is fast for small bodies; the action reads all others.
http-request set-var(txn.small) bool(true) if { var(txn.length) -m int le 4096 } { req.body_len,sub(txn.length) eq 0 }
acl is_small var(txn.small) -m found
{{- range $path, $_ := include "gateway.jsonOperations" . | fromJson }}
http-request set-var(txn.parsed) req.body,lua.parse_body({{ $path }}) if is_small { var(txn.operation) -m str {{ $path }} }
{{- end }}
acl is_parsed var(txn.parsed) -m found
http-request lua.parse_body if is_json !is_parsed
http-request set-var(txn.requested_model) var(txn.parsed),word(3,' ') if is_json { var(txn.parsed) -m beg "ok " }
acl has_requested_model var(txn.requested_model) -m found
{{- include "gateway.frontendFields" . | trim | nindent 0 }}
{{- range list "body-not-json" "body-too-complex" "model-missing" "model-not-string" "model-duplicate" "model-unknown" }}
http-request return {{ include "gateway.error" (dict "errors" $.errors "id" .) }} if !has_requested_model is_json { var(txn.parsed) -m str {{ . }} }
{{- end }}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "body-read-failed") }} if !has_requested_model is_json
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "model-mismatch") }} if is_json has_path_model !{ var(txn.requested_model),strcmp(txn.path_model) eq 0 }
http-request set-var(txn.requested_model) var(txn.path_model) unless is_json
{{- end }}
