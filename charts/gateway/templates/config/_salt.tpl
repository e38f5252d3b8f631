{{- /* A `cache_salt` for each tenant, set by salt.lua. Rendered only if several tenants may call a model of vLLM. */ -}}

{{- /* Models whose prefix cache is separate for each tenant; the remote gateway sets the salt of one without endpoints. Takes (dict v tasks). */ -}}
{{- define "gateway.saltedModels" -}}
{{- $tenants := dict }}
{{- range .v.tenants }}
{{- range .models | uniq }}
{{- $_ := set $tenants . (add1 (get $tenants . | default 0)) }}
{{- end }}
{{- end }}
{{- $found := list }}
{{- range $id, $model := .v.models }}
{{- $isShared := gt (get $tenants $id | default 0 | int) 1 }}
{{- $isSeparate := and (get $.tasks $model.task).has_cache_salt (not $model.prefixCache.sharedReason) }}
{{- if and $isShared $isSeparate (include "gateway.servedHere" $model | fromJson) }}
{{- $found = append $found $id }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{- define "gateway.loadSalt" }}
{{- if include "gateway.saltedModels" . | fromJsonArray }}
  lua-load-per-thread salt.lua
{{- end }}
{{- end }}

{{- /* For the backend of a model, if it is salted; takes (dict data id). The field has 80 bytes, with its name and the salt. A
       body in chunks has no length. */ -}}
{{- define "gateway.setSalt" }}
{{- include "gateway.arguments" (dict "template" "gateway.setSalt" "given" . "names" (list "data" "id")) }}
{{- if has .id (include "gateway.saltedModels" .data | fromJsonArray) }}
  filter lua.salt
  http-request return {{ get .data.answers "salt-missing" }} unless { lua.has_salt -m bool }
  http-request set-header content-length %[req.fhdr(content-length),add(80)] if { req.fhdr(content-length) -m found }
{{- end }}
{{- end }}

{{- define "gateway.readyWithSalt" }}
{{- if include "gateway.saltedModels" . | fromJsonArray }}
  acl has_salt lua.has_salt -m bool
  http-request return status 503 content-type text/plain string "the Secret of prefixCache.salt is empty" if { path /readyz } !has_salt
{{- end }}
{{- end }}

{{- define "gateway.saltSource" -}}
{{- with .prefixCache.salt }}
{{- if .secretName }}
- secret:
    name: {{ .secretName }}
    items:
      - {key: {{ .secretKey | quote }}, path: salt/key}
{{- end }}
{{- end }}
{{- end }}
