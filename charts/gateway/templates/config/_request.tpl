{{- /* Address, body and model of a request. */ -}}

{{- /* routes.map has every address that there is, letter by letter: nothing is normalised, so no trick leads elsewhere. */ -}}
{{- define "gateway.doorRoute" -}}
http-request return {{ include "gateway.answer" (list . "version-wrong") }} unless { req.ver 1.1 1.0 }
http-request set-var(txn.route) path,map_str(routes.map)
http-request return {{ include "gateway.answer" (list . "path-unknown") }} unless { var(txn.route) -m found }
http-request set-var(txn.method) var(txn.route),word(1,' ')
http-request set-var(txn.body) var(txn.route),word(2,' ')
http-request set-var(txn.bound) var(txn.route),word(4,' ')
http-request return {{ include "gateway.answer" (list . "method-wrong" "allow %[var(txn.method)]") }} unless { method,strcmp(txn.method) eq 0 }
http-request set-var(txn.operation) var(txn.route),word(3,' ')
acl is_json var(txn.body) -m str json
acl is_stream var(txn.body) -m str stream
acl is_bound var(txn.bound) -m found
# A list of models needs no model.
http-request return status 200 content-type application/json lf-string '{"object":"list","data":[%[var(txn.tenant),map_str(lists.map)]]}' if { var(txn.body) -m str list } !is_bound
{{- end }}

{{- /* A JSON body is read whole, within a size and a time, and only after the key was good. */ -}}
{{- define "gateway.doorBody" -}}
{{- $limits := .v.limits -}}
http-request return {{ include "gateway.answer" (list . "length-needed") }} if is_stream { var(txn.method) -m str POST } !{ req.fhdr_cnt(content-length) eq 1 }
http-request return {{ include "gateway.answer" (list . "length-needed") }} if is_stream { req.fhdr_cnt(transfer-encoding) gt 0 }
http-request return {{ include "gateway.answer" (list . "body-too-large") }} if is_stream { req.fhdr(content-length) -m int gt {{ int $limits.uploadBytes }} }
http-request return {{ include "gateway.answer" (list . "body-too-large") }} if is_json { req.fhdr(content-length) -m int gt {{ int $limits.bodyBytes }} }
http-request wait-for-body time {{ int .v.timeouts.bodySeconds }}s if is_json
http-request return {{ include "gateway.answer" (list . "body-too-large") }} if is_json { req.body_len gt {{ int $limits.bodyBytes }} }
http-request set-var(txn.asked) req.body,json_query('$.model') if is_json
http-request lua.read_model if is_json
{{- range list "body-not-json" "model-missing" "model-not-text" "model-twice" "model-unknown" }}
http-request return {{ include "gateway.answer" (list $ .) }} if is_json { var(txn.verdict) -m str {{ . }} }
{{- end }}
http-request return {{ include "gateway.answer" (list . "body-unread") }} if is_json !{ var(txn.verdict) -m str ok }
http-request return {{ include "gateway.answer" (list . "model-of-another-path") }} if is_json is_bound !{ var(txn.asked),strcmp(txn.bound) eq 0 }
http-request set-var(txn.asked) var(txn.bound) unless is_json
{{- end }}

{{- /* slots.map has every model; access.map the tenants' models, each with a pin or a star. */ -}}
{{- define "gateway.doorModel" -}}
http-request set-var(txn.slots) var(txn.asked),map_str_int(slots.map)
http-request return {{ include "gateway.answer" (list . "model-unknown") }} unless { var(txn.slots) -m found }
http-request set-var(txn.model) var(txn.asked)
http-request set-var(txn.pin) var(txn.tenant),concat(:,txn.model),map_str(access.map)
http-request return {{ include "gateway.answer" (list . "model-forbidden") }} unless { var(txn.pin) -m found }
http-request return status 200 content-type application/json lf-string '{"object":"list","data":[%[var(txn.model),map_str(objects.map)]]}' if { var(txn.body) -m str list }
http-request return status 200 content-type application/json lf-string %[var(txn.model),map_str(objects.map)] if { var(txn.body) -m str object }
http-request return {{ include "gateway.answer" (list . "operation-unknown") }} unless { var(txn.model),concat(:,txn.operation),map_str(operations.map) -m found }
# The header decides before the tenant's pin, and that before the weights: dice.map has a version for each slot.
http-request set-var(txn.wanted) req.fhdr(x-model-version) if { req.fhdr_cnt(x-model-version) gt 0 }
http-request return {{ include "gateway.answer" (list . "version-unknown") }} if { req.fhdr_cnt(x-model-version) gt 1 }
http-request set-var(txn.wanted) var(txn.pin) if !{ var(txn.wanted) -m found } !{ var(txn.pin) -m str * }
http-request set-var(txn.slot) rand,mod(txn.slots) unless { var(txn.wanted) -m found }
http-request set-var(txn.wanted) var(txn.model),concat(:,txn.slot),map_str(dice.map) if { var(txn.slot) -m found }
http-request set-var(txn.backend) var(txn.model),concat(:,txn.wanted),map_str(backends.map)
http-request return {{ include "gateway.answer" (list . "version-unknown") }} unless { var(txn.backend) -m found }
http-request set-var(txn.version) var(txn.wanted)
{{- end }}

{{- /* What goes up: no key, nothing that only we may say, nothing that Ray would take for its own. */ -}}
{{- define "gateway.doorUpstream" -}}
{{- range list "authorization" "proxy-authorization" "cookie" "x-api-key" "api-key" "x-tenant" "x-model-version" "forwarded" "via" "x-real-ip" "x-session-id" }}
http-request del-header {{ . }}
{{- end }}
{{- range list "x-rayhelm-" "x-forwarded-" "x-ray-" "x-serve-" }}
http-request del-header {{ . }} -m beg
{{- end }}
# These are between a client and us: one that names our own headers in `connection` would have the next hop drop them.
{{- range list "connection" "upgrade" "http2-settings" "keep-alive" "proxy-connection" "te" "trailer" }}
http-request del-header {{ . }}
{{- end }}
# A JSON body is here whole, and goes up with its length: the server takes what follows a last chunk for headers. From 3.2
# on the body would be lost that way, and there is an option against such headers.
.if version_before(3.2)
http-request set-header content-length %[req.body_len] if is_json { req.fhdr_cnt(transfer-encoding) gt 0 }
http-request del-header transfer-encoding if is_json
.endif
# It was read as it stands, so nobody behind is told to unpack it.
http-request del-header content-encoding if is_json
http-request del-header expect if is_json
http-request set-header x-request-id %[var(txn.id)]
http-request set-header x-rayhelm-tenant %[var(txn.tenant)]
use_backend %[var(txn.backend)]
# Upstreams say to browsers that everybody may call them, and who they are.
http-response del-header access-control- -m beg
http-response del-header server
{{- end }}
