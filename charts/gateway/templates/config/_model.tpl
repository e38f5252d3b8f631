{{- /* A model that the tenant may not use gets the same response as one that does not exist. access.map has the models of each tenant with the version it always gets, or `*` where
       the weights decide. */ -}}
{{- define "gateway.frontendModel" -}}
{{- $named := ternary "txn.requested_model" "txn.model" (ne (include "gateway.hasAliases" .v | trim) "") -}}
http-request set-var(txn.fixed_version) var(txn.tenant),concat(:,txn.requested_model),map_str(access.map)
acl is_allowed var(txn.fixed_version) -m found
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "model-unknown") }} unless is_allowed
http-request set-var(txn.model) var(txn.requested_model)
{{- include "gateway.frontendAlias" . }}
{{- with include "gateway.frontendBounds" . | trim }}
{{- . | nindent 0 }}
{{- end }}
http-request return status 200 content-type application/json lf-string '{"object":"list","data":[%[var({{ $named }}),map_str(objects.map)]]}' if !is_json { var(txn.body_kind) -m str list }
http-request return status 200 content-type application/json lf-string %[var({{ $named }}),map_str(objects.map)] if !is_json { var(txn.body_kind) -m str object }
{{- if include "gateway.lacksOperation" . | trim }}
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "operation-unsupported") }} unless { var(txn.model),concat(:,txn.operation),map_str(operations.map) -m found }
{{- end }}
# The header decides first, then the pinned version, then the weights: slot-versions.map has a version for each slot.
http-request set-var(txn.requested_version) req.fhdr(x-model-version)
acl has_version var(txn.requested_version) -m found
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "version-unknown") }} if has_version { req.fhdr_cnt(x-model-version) gt 1 }
{{- if include "gateway.mapHiddenVersions" . | trim }}
# A tenant with a pinned version reaches no other version whose weight is 0.
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "version-unknown") }} if has_version { var(txn.tenant),concat(:,txn.model),concat(:,txn.requested_version),map_str(hidden-versions.map) -m found }
{{- end }}
{{- if include "gateway.mapAccess" . | regexMatch "(?m) [*]$" }}
http-request set-var(txn.requested_version) var(txn.fixed_version) if !has_version !{ var(txn.fixed_version) -m str * }
http-request set-var(txn.slots) var(txn.model),map_str_int(slot-counts.map) unless has_version
http-request set-var(txn.slot) rand,mod(txn.slots) if { var(txn.slots) -m found }
http-request set-var(txn.requested_version) var(txn.model),concat(:,txn.slot),map_str(slot-versions.map) if { var(txn.slot) -m found }
{{- else }}
http-request set-var(txn.requested_version) var(txn.fixed_version) unless has_version
{{- end }}
http-request set-var(txn.backend) var(txn.model),concat(:,txn.requested_version),map_str(backends.map)
http-request return {{ include "gateway.error" (dict "errors" .errors "id" "version-unknown") }} unless { var(txn.backend) -m found }
http-request set-var(txn.version) var(txn.requested_version)
{{- end }}
