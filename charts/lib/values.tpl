{{- /* The values as JSON: validated, each entry of a map completed with the defaults of the values model. Every template
       reads them here. The first call completes and validates them; validate/first/values.yaml makes it, because Helm
       renders the deepest path first. By way of JSON, because `--set` gives int64 and a file float64, which templates do
       not compare. Takes the root. */ -}}
{{- define "lib.values" -}}
{{- if not (hasKey . "validated") }}
{{- $values := .Values | toJson | fromJson }}
{{- range .Files.Get "files/defaults.json" | fromJsonArray }}
{{- include "lib.complete" (dict "node" $values "path" .path "defaults" .defaults) }}
{{- end }}
{{- include "lib.derive" $values }}
{{- include "lib.validateCommonLabels" (set $values "root" .) }}
{{- include "lib.validateCommonAnnotations" $values }}
{{- include "lib.validateExtraObjects" $values }}
{{- include "lib.validate" $values }}
{{- include "lib.failRefused" . }}
{{- include "lib.setPullSettings" $values }}
{{- $_ := set . "validated" (unset $values "root" | toJson) }}
{{- end }}
{{- .validated }}
{{- end }}

{{- /* Lays every entry at a path over the defaults. Takes a dict: node, path (`*` for each key of a map), defaults. */ -}}
{{- define "lib.complete" -}}
{{- include "lib.arguments" (dict "template" "lib.complete" "given" . "names" (list "node" "path" "defaults")) -}}
{{- $part := first .path }}
{{- $below := rest .path }}
{{- $defaults := .defaults }}
{{- $map := .node }}
{{- if kindIs "map" $map }}
{{- range $name, $entry := $map }}
{{- if not (has $part (list "*" $name)) }}
{{- else if $below }}
{{- include "lib.complete" (dict "node" $entry "path" $below "defaults" $defaults) }}
{{- else }}
{{- $_ := set $map $name (mergeOverwrite (deepCopy $defaults) $entry) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
