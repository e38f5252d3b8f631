{{- /* The client's address behind a load balancer. What clients send is believed from named addresses only. */ -}}

{{- /* One line for each block: HAProxy reads 64 words of a line. */ -}}
{{- define "gateway.frontendBalancers" }}
{{- with .v.clientAddress }}
{{- range .proxyProtocolCidrs }}
  acl from_proxy src {{ . }}
{{- end }}
{{- range .forwardedForCidrs }}
  acl from_forwarder src {{ . }}
{{- end }}
{{- if .proxyProtocolCidrs }}
  tcp-request connection set-var(sess.proxied) bool(true) if from_proxy
  tcp-request connection expect-proxy layer4 if from_proxy
{{- end }}
{{- end }}
{{- end }}

{{- /* Replaces the address of a request by the last one of the header that no load balancer of the list has. Each step needs
       the one before it: behind an entry that is no address, a client could have written the others. */ -}}
{{- define "gateway.frontendClient" }}
{{- if .v.clientAddress.forwardedForCidrs }}
  http-request set-var(txn.hop1) req.hdr_ip(x-forwarded-for,-1) if from_forwarder
  acl has_hop1 var(txn.hop1) -m found
  http-request set-src var(txn.hop1) if from_forwarder has_hop1
  http-request set-var(txn.hop2) req.hdr_ip(x-forwarded-for,-2) if has_hop1 from_forwarder
  acl has_hop2 var(txn.hop2) -m found
  http-request set-src var(txn.hop2) if has_hop1 from_forwarder has_hop2
  http-request set-var(txn.hop3) req.hdr_ip(x-forwarded-for,-3) if has_hop2 from_forwarder
  acl has_hop3 var(txn.hop3) -m found
  http-request set-src var(txn.hop3) if has_hop2 from_forwarder has_hop3
{{- end }}
{{- end }}

{{- define "gateway.forwardedForHeader" }}
{{- if .v.clientAddress.passOn }}
  http-request add-header x-forwarded-for %[src]
{{- end }}
{{- end }}
