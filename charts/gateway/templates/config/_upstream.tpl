{{- /* Headers of the request to the model server: no key, no header that only the gateway may set, and no header that Ray
       or vLLM would interpret: with x-request-timeout-seconds and x-request-disconnect-disabled a request would outlive its
       limits. */ -}}
{{- define "gateway.frontendUpstream" -}}
{{- $names := list "authorization" "proxy-authorization" "cookie" "x-api-key" "api-key" "x-tenant" "x-model-version" "forwarded" "via" "x-real-ip" "x-session-id" "x-data-parallel-rank" "x-body-truncated" "endpoint-load-metrics-format" "traceparent" "tracestate" "baggage" }}
{{- $prefixes := list "x-rayhelm-" "x-forwarded-" "x-ray-" "x-serve-" "x-request-" "x-vllm-" }}
{{- /* Hop-by-hop headers: with `connection` a client could name our headers, and the next hop would drop them. */ -}}
{{- $hop := list "connection" "upgrade" "http2-settings" "keep-alive" "proxy-connection" "te" "trailer" }}
{{- /* The gateway read the body as uncompressed JSON, so the server has to read it the same way. Ray answers 500 without the type. */ -}}
{{- $body := list "content-type" "content-encoding" "expect" }}
http-request del-header ^({{ concat $names $hop | join "|" }})$|^({{ join "|" $prefixes }}) -m reg unless is_json
http-request del-header ^({{ concat $names $hop $body | join "|" }})$|^({{ join "|" $prefixes }}) -m reg if is_json
# The gateway holds the whole JSON body and sends it with its length: the server would read lines after the last chunk as
# headers. From HAProxy 3.2 on the body would be lost that way, and an option drops those lines.
.if version_before(3.2)
http-request set-header content-length %[req.body_len] if is_json { req.fhdr_cnt(transfer-encoding) gt 0 }
http-request del-header transfer-encoding if is_json
.endif
# All headers with these names are removed above.
http-request add-header content-type application/json if is_json
http-request add-header x-request-id %[var(txn.id)]
http-request add-header x-rayhelm-tenant %[var(txn.tenant)]
{{- include "gateway.remoteHeader" .v }}
{{- include "gateway.traceHeaders" .v }}
{{- with include "gateway.streamOptions" .v | trim }}
{{- . | nindent 0 }}
{{- end }}
# Who sent it, for the metrics.
http-request track-sc1 var(txn.tenant),concat(:,txn.model),concat(:,txn.version) table requests
use_backend %[var(txn.backend)]
# Model servers send CORS headers that allow every origin, and their product name. x-usage- headers are the gateway's.
http-response return {{ include "gateway.error" (dict "errors" .errors "id" "response-invalid") }} unless { status 100:599 }
http-response del-header ^(access-control-|server$|x-rayhelm-(reason|final)$|x-usage-) -m reg
{{- include "gateway.markFinal" .v }}
{{- end }}
