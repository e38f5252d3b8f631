{{- /* All configuration files by name, as JSON. The ConfigMap holds them; `rayhelm up` writes them to a folder. Paths in them
       are relative to that folder: `haproxy -C FOLDER -f haproxy.cfg`. */ -}}
{{- define "gateway.files" -}}
{{- include "gateway.arguments" (dict "template" "gateway.files" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $data := dict "root" $root "v" .v }}
{{- $_ := set $data "errors" ($root.Files.Get "files/errors.yaml" | fromYaml) }}
{{- $_ := set $data "tasks" ($root.Files.Get "files/tasks.json" | fromJson) }}
{{- $_ := set $data "answers" (include "gateway.answers" $data | fromJson) }}
{{- $files := dict "haproxy.cfg" (printf "%s\n" (include "gateway.haproxyConfig" $data | trim)) }}
{{- range list "keys.lua" "live.lua" "circuit.lua" "fields.lua" "body.lua" "metrics.lua" }}
{{- $_ := set $files . ($root.Files.Get (printf "files/%s" .)) }}
{{- end }}
{{- if include "gateway.readSecrets" .v | trim }}
{{- $_ := set $files "secrets.lua" ($root.Files.Get "files/secrets.lua") }}
{{- $_ := set $files "remote-keys.map" "" }}
{{- $_ := set $files "certificates.map" "" }}
{{- $_ := set $files "remote-failed.http" (include "gateway.remoteFailedFile" $data) }}
{{- end }}
{{- if include "gateway.hasAliases" .v | trim }}
{{- $_ := set $files "aliases.map" (printf "%s\n" (include "gateway.mapAliases" $data | trim)) }}
{{- end }}
{{- if ne .v.openapi.access "None" }}
{{- $_ := set $files "openapi.json" (include "gateway.openapiFile" $data) }}
{{- $_ := set $files "docs.html" (include "gateway.openapiPage" $data) }}
{{- end }}
{{- if .v.oidc.enabled }}
{{- range list "tokens.lua" "jwks.lua" "json.lua" }}
{{- $_ := set $files . ($root.Files.Get (printf "files/%s" .)) }}
{{- end }}
{{- $_ := set $files "oidc.json" (include "gateway.oidcFile" $data) }}
{{- end }}
{{- with include "gateway.mapSessions" $data | trim }}
{{- $_ := set $files "sessions.lua" ($root.Files.Get "files/sessions.lua") }}
{{- $_ := set $files "sessions.map" (printf "%s\n" .) }}
{{- end }}
{{- if include "gateway.hasBuckets" .v | trim }}
{{- range list "buckets.lua" "costs.lua" "usage.lua" }}
{{- $_ := set $files . ($root.Files.Get (printf "files/%s" .)) }}
{{- end }}
{{- $_ := set $files "costs.map" (printf "%s\n" (include "gateway.mapCosts" $data | trim)) }}
{{- /* buckets.lua fills them while HAProxy runs. */ -}}
{{- $_ := set $files "buckets.map" "" }}
{{- $_ := set $files "excess.map" "" }}
{{- end }}
{{- if include "gateway.checksForms" $data | trim }}
{{- $_ := set $files "forms.lua" ($root.Files.Get "files/forms.lua") }}
{{- end }}
{{- if include "gateway.saltedModels" $data | fromJsonArray }}
{{- $_ := set $files "salt.lua" ($root.Files.Get "files/salt.lua") }}
{{- end }}
{{- $maps := dict }}
{{- $_ := set $maps "routes" (include "gateway.mapRoutes" $data) }}
{{- $_ := set $maps "operations" (include "gateway.mapOperations" $data) }}
{{- $_ := set $maps "objects" (include "gateway.mapObjects" $data) }}
{{- $_ := set $maps "fields" (include "gateway.mapFields" $data) }}
{{- $_ := set $maps "tenants" (include "gateway.mapTenants" $data) }}
{{- $_ := set $maps "backends" (include "gateway.mapBackends" $data) }}
{{- range $name, $text := $maps }}
{{- $_ := set $files (printf "%s.map" $name) (printf "%s\n" (trim $text)) }}
{{- end }}
{{- /* keys.lua fills the first two while HAProxy runs, circuit.lua the third. */ -}}
{{- range list "keys" "state" "circuit" }}
{{- $_ := set $files (printf "%s.map" .) "" }}
{{- end }}
{{- /* All above needs another process. live.lua takes over the maps below while HAProxy runs. */ -}}
{{- $_ := set $files "structure" ($files | toJson | sha256sum) }}
{{- range $name, $text := include "gateway.liveMaps" $data | fromJson }}
{{- $_ := set $files (printf "%s.map" $name) (printf "%s\n# end\n" (trim $text) | trimPrefix "\n") }}
{{- end }}
{{- $files | toJson }}
{{- end }}

{{- /* Text of each map that live.lua takes over, by name, as JSON. Takes the data of gateway.files. */ -}}
{{- define "gateway.liveMaps" -}}
{{- $maps := dict }}
{{- $_ := set $maps "access" (include "gateway.mapAccess" .) }}
{{- $_ := set $maps "limits" (include "gateway.mapLimits" .) }}
{{- $_ := set $maps "rate-limits" (include "gateway.mapRateLimits" .) }}
{{- $_ := set $maps "concurrency-limits" (include "gateway.mapConcurrencyLimits" .) }}
{{- $_ := set $maps "lists" (include "gateway.mapLists" .) }}
{{- $_ := set $maps "bounds" (include "gateway.mapBounds" .) }}
{{- $_ := set $maps "slot-counts" (include "gateway.mapSlotCounts" .) }}
{{- $_ := set $maps "slot-versions" (include "gateway.mapSlotVersions" .) }}
{{- $_ := set $maps "hidden-versions" (include "gateway.mapHiddenVersions" .) }}
{{- $maps | toJson }}
{{- end }}
