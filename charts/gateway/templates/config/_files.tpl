{{- /* All configuration files by name, as JSON. The ConfigMap holds them; `rayhelm up` writes them to a folder. Paths in them
       are relative to that folder: `haproxy -C FOLDER -f haproxy.cfg`. */ -}}
{{- define "gateway.files" -}}
{{- include "gateway.arguments" (dict "template" "gateway.files" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $data := dict "root" $root "v" .v }}
{{- $_ := set $data "errors" ($root.Files.Get "files/errors.yaml" | fromYaml) }}
{{- $_ := set $data "tasks" ($root.Files.Get "files/tasks.json" | fromJson) }}
{{- $sections := list }}
{{- range list "configGlobal" "configDefaults" "configFrontend" "configSources" "configBackends" "configForwarded" "configRemotes" "configMetrics" }}
{{- with include (printf "gateway.%s" .) $data | trim }}
{{- $sections = append $sections . }}
{{- end }}
{{- end }}
{{- $files := dict "haproxy.cfg" (printf "%s\n" (join "\n\n" $sections)) }}
{{- range list "keys.lua" "circuit.lua" "fields.lua" "body.lua" "metrics.lua" }}
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
{{- range list "routes" "operations" "objects" "lists" "access" "limits" "rate-limits" "concurrency-limits" "bounds" "fields" "tenants" "backends" "slot-counts" "slot-versions" "hidden-versions" }}
{{- $template := . | replace "-" " " | title | nospace | printf "gateway.map%s" }}
{{- $_ := set $files (printf "%s.map" .) (printf "%s\n" (include $template $data | trim)) }}
{{- end }}
{{- /* keys.lua fills the first two while HAProxy runs, circuit.lua the third. */ -}}
{{- range list "keys" "state" "circuit" }}
{{- $_ := set $files (printf "%s.map" .) "" }}
{{- end }}
{{- $files | toJson }}
{{- end }}
