{{- /* Further names of a model. */ -}}
{{- define "ray-service.validateAliases" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateAliases" "given" . "names" (list "v" "path" "model" "taken")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $model := .model }}
{{- $taken := .taken }}
{{- $bad := list }}
{{- $kept := list }}
{{- range $model.aliases }}
{{- if or (has . $taken) (has . $kept) }}
{{- $bad = append $bad (dict "name" .) }}
{{- else }}
{{- $kept = append $kept . }}
{{- end }}
{{- end }}
{{- $words := dict "path" $path "kept" (toJson $kept) }}
{{- include "ray-service.refuseEntries" (dict "v" $v "id" "alias-duplicate" "bad" $bad "words" $words) }}
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
