{{- /* Every file of the configuration by name, as JSON: the ConfigMap holds them, and a local run writes them to a folder.
       Paths inside are relative to that folder: `haproxy -C FOLDER -f haproxy.cfg`. Takes (list root values). */ -}}
{{- define "gateway.files" -}}
{{- $root := index . 0 }}
{{- $data := dict "root" $root "v" (index . 1) }}
{{- $_ := set $data "errors" ($root.Files.Get "files/errors.yaml" | fromYaml) }}
{{- $_ := set $data "operations" ($root.Files.Get "files/operations.yaml" | fromYaml) }}
{{- $sections := list }}
{{- range list "configGlobal" "configDefaults" "configDoor" "configBackends" "configMetrics" }}
{{- $sections = append $sections (include (printf "gateway.%s" .) $data | trim) }}
{{- end }}
{{- $files := dict "haproxy.cfg" (printf "%s\n" (join "\n\n" $sections)) }}
{{- range list "keys.lua" "body.lua" }}
{{- $_ := set $files . ($root.Files.Get (printf "files/%s" .)) }}
{{- end }}
{{- range list "routes" "operations" "objects" "lists" "access" "limits" "tenants" "backends" "slots" "dice" }}
{{- $_ := set $files (printf "%s.map" .) (printf "%s\n" (include (printf "gateway.map%s" (title .)) $data | trim)) }}
{{- end }}
{{- /* These two are filled in while HAProxy runs. */ -}}
{{- range list "keys" "state" }}
{{- $_ := set $files (printf "%s.map" .) "" }}
{{- end }}
{{- $files | toJson }}
{{- end }}
