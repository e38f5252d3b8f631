{{- /* What goes up: no key, nothing that only we may say, nothing that Ray would take for its own. */ -}}
{{- define "gateway.doorUpstream" -}}
{{- $ours := list "authorization" "proxy-authorization" "cookie" "x-api-key" "api-key" "x-tenant" "x-model-version" "forwarded" "via" "x-real-ip" "x-session-id" }}
{{- $prefixes := list "x-rayhelm-" "x-forwarded-" "x-ray-" "x-serve-" }}
{{- /* These are between a client and us: one that names our own headers in `connection` would have the next hop drop them. */ -}}
{{- $hop := list "connection" "upgrade" "http2-settings" "keep-alive" "proxy-connection" "te" "trailer" }}
http-request del-header ^({{ concat $ours $hop | join "|" }})$|^({{ join "|" $prefixes }}) -m reg
# A JSON body is here whole, and goes up with its length: the server takes what follows a last chunk for headers. From 3.2
# on the body would be lost that way, and there is an option against such headers.
.if version_before(3.2)
http-request set-header content-length %[req.body_len] if is_json { req.fhdr_cnt(transfer-encoding) gt 0 }
http-request del-header transfer-encoding if is_json
.endif
# It was read as JSON, and as it stands: without the type Ray fails on it, and nobody behind is told to unpack it.
http-request set-header content-type application/json if is_json
http-request del-header content-encoding if is_json
http-request del-header expect if is_json
http-request set-header x-request-id %[var(txn.id)]
http-request set-header x-rayhelm-tenant %[var(txn.tenant)]
use_backend %[var(txn.backend)]
# Upstreams say to browsers that everybody may call them, and who they are.
http-response del-header access-control- -m beg
http-response del-header server
{{- end }}
