{{- /* Address, body and model of a request. */ -}}

{{- /* routes.map has every address that there is, letter by letter: nothing is normalised, so no trick leads elsewhere. */ -}}
{{- define "gateway.doorRoute" -}}
http-request return {{ include "gateway.answer" (list . "version-wrong") }} unless { req.ver 1.1 1.0 }
http-request set-var(txn.route) path,map_str(routes.map)
http-request return {{ include "gateway.answer" (list . "path-unknown") }} unless { var(txn.route) -m found }
http-request set-var(txn.method) var(txn.route),word(1,' ')
http-request set-var(txn.verb) method
http-request return {{ include "gateway.answer" (list . "method-wrong" "allow %[var(txn.method)]") }} unless { var(txn.method),strcmp(txn.verb) eq 0 }
http-request set-var(txn.operation) var(txn.route),word(3,' ')
http-request set-var(txn.bound) var(txn.route),word(4,' ')
acl is_bound var(txn.bound) -m found
# To find a variable is cheaper than to compare it, and most requests are of this kind.
http-request set-var(txn.json) bool(true) if { var(txn.route),word(2,' ') -m str json }
acl is_json var(txn.json) -m found
http-request set-var(txn.body) var(txn.route),word(2,' ') unless is_json
http-request set-var(txn.stream) bool(true) if { var(txn.body) -m found } { var(txn.body) -m str stream }
acl is_stream var(txn.stream) -m found
# A list of models needs no model.
{{- $parts := 1 }}
{{- range .v.tenants }}
{{- $parts = max $parts (include "gateway.listParts" . | fromJsonArray | len) }}
{{- end }}
{{- $list := "var(txn.list0)" }}
{{- range $part := until (int $parts) }}
http-request set-var(txn.list{{ $part }}) var(txn.tenant),concat(:{{ $part }}),map_str(lists.map) if !is_json !is_bound { var(txn.body) -m str list }
{{- if $part }}
{{- $list = printf "%s,concat(,txn.list%d)" $list $part }}
{{- end }}
{{- end }}
http-request return status 200 content-type application/json lf-string '{"object":"list","data":[%[{{ $list }}]]}' if !is_json !is_bound { var(txn.body) -m str list }
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
# Two ways to the same answer, `ok MODEL BEGINNING` or what is wrong: the first is fast for small bodies.
http-request set-var(txn.length) req.body_size if is_json { req.fhdr_cnt(content-length) eq 1 }
http-request set-var(txn.read) req.body,lua.read if { var(txn.length) -m int le 4096 } { req.body_len,sub(txn.length) eq 0 }
acl is_read var(txn.read) -m found
http-request lua.read if is_json !is_read
http-request set-var(txn.asked) var(txn.read),word(2,' ') if is_json { var(txn.read) -m beg "ok " }
acl is_asked var(txn.asked) -m found
{{- range list "body-not-json" "model-missing" "model-not-text" "model-twice" "model-unknown" }}
http-request return {{ include "gateway.answer" (list $ .) }} if !is_asked is_json { var(txn.read) -m str {{ . }} }
{{- end }}
http-request return {{ include "gateway.answer" (list . "body-unread") }} if !is_asked is_json
http-request return {{ include "gateway.answer" (list . "model-of-another-path") }} if is_json is_bound !{ var(txn.asked),strcmp(txn.bound) eq 0 }
http-request set-var(txn.asked) var(txn.bound) unless is_json
{{- end }}

{{- /* slots.map has every model; access.map the tenants' models, each with its version, or a star where weights decide. */ -}}
{{- define "gateway.doorModel" -}}
http-request set-var(txn.pin) var(txn.tenant),concat(:,txn.asked),map_str(access.map)
acl is_allowed var(txn.pin) -m found
http-request return {{ include "gateway.answer" (list . "model-unknown") }} if !is_allowed !{ var(txn.asked),map_str_int(slots.map) -m found }
http-request set-var(txn.model) var(txn.asked)
http-request return {{ include "gateway.answer" (list . "model-forbidden") }} unless is_allowed
http-request return status 200 content-type application/json lf-string '{"object":"list","data":[%[var(txn.model),map_str(objects.map)]]}' if !is_json { var(txn.body) -m str list }
http-request return status 200 content-type application/json lf-string %[var(txn.model),map_str(objects.map)] if !is_json { var(txn.body) -m str object }
http-request return {{ include "gateway.answer" (list . "operation-unknown") }} unless { var(txn.model),concat(:,txn.operation),map_str(operations.map) -m found }
# The header decides before the tenant's pin, and that before the weights: dice.map has a version for each slot.
http-request set-var(txn.wanted) req.fhdr(x-model-version) if { req.fhdr_cnt(x-model-version) gt 0 }
http-request return {{ include "gateway.answer" (list . "version-unknown") }} if { req.fhdr_cnt(x-model-version) gt 1 }
acl is_chosen var(txn.wanted) -m found
http-request set-var(txn.wanted) var(txn.pin) if !is_chosen !{ var(txn.pin) -m str * }
http-request set-var(txn.slots) var(txn.model),map_str_int(slots.map) unless is_chosen
http-request set-var(txn.slot) rand,mod(txn.slots) unless is_chosen
http-request set-var(txn.wanted) var(txn.model),concat(:,txn.slot),map_str(dice.map) if { var(txn.slot) -m found }
http-request set-var(txn.backend) var(txn.model),concat(:,txn.wanted),map_str(backends.map)
http-request return {{ include "gateway.answer" (list . "version-unknown") }} unless { var(txn.backend) -m found }
http-request set-var(txn.version) var(txn.wanted)
{{- end }}
