{{- /* HAProxy hashes the id of a server, by default its position in the backend: an endpoint whose name sorts first would move
       the keys of all others. So the id comes from the name. HAProxy numbers servers without an id from 1 on; these ids
       start above. The hash sees an id modulo 2^20, so a backup server with 2^20 more gets the keys of its endpoint.
       JSON: name -> id. */ -}}
{{- define "gateway.serverIds" -}}
{{- include "gateway.arguments" (dict "template" "gateway.serverIds" "given" . "names" (list "endpoints")) -}}
{{- $ids := dict }}
{{- $used := dict }}
{{- range $name, $_ := .endpoints }}
{{- $id := printf "0x%s" (sha256sum $name | trunc 5) | int64 | add 65536 }}
{{- range $_ := $used }}
{{- if hasKey $used (toString $id) }}
{{- $id = add1 $id }}
{{- end }}
{{- end }}
{{- $_ := set $used (toString $id) $name }}
{{- $_ := set $ids $name $id }}
{{- end }}
{{- toJson $ids }}
{{- end }}
