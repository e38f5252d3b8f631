{{- /* Further names of a model. */ -}}
{{- define "ray-service.validateAliases" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateAliases" "given" . "names" (list "v" "path" "model" "taken")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $model := .model }}
{{- $taken := .taken }}
{{- range $model.aliases }}
{{- if or (has . $taken) (ne (len (uniq $model.aliases)) (len $model.aliases)) }}
{{- $others := has . $taken | ternary (without $model.aliases .) (uniq $model.aliases) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "alias-duplicate" "words" (dict "path" $path "name" . "others" (join ", " $others))) }}
{{- end }}
{{- end }}
{{- if $model.aliases }}
{{- if not $v.image.includesRayhelm }}
{{- include "ray-service.refuse" (dict "v" $v "id" "alias-image" "words" (dict "path" $path "image" (list "image"))) }}
{{- end }}
{{- range $name, $group := $v.workerGroups }}
{{- if not (include "ray-service.hasRayhelm" (dict "image" $v.image "override" $group.image)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "alias-image" "words" (dict "path" $path "image" (list "workerGroups" $name "image"))) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
