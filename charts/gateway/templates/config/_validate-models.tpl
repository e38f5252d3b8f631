{{- define "gateway.validateModels" -}}
{{- $v := . }}
{{- $allowed := list }}
{{- range .tenants }}
{{- $allowed = concat $allowed .models }}
{{- end }}
{{- $first := keys .tenants | sortAlpha | first }}
{{- $backends := dict }}
{{- range $id, $model := .models }}
{{- if not (has $id $allowed) }}
{{- include "gateway.refuse" (list "model-nobody" (dict "model" $id "tenant" $first "models" (join ", " (append (get $v.tenants $first).models $id)))) }}
{{- end }}
{{- $backend := include "gateway.backend" (list $id "") }}
{{- with get $backends $backend }}
{{- include "gateway.refuse" (list "model-names-alike" (dict "model" $id "other" .)) }}
{{- end }}
{{- $_ := set $backends $backend $id }}
{{- if not $model.versions }}
{{- include "gateway.refuse" (list "model-versions" (dict "model" $id)) }}
{{- end }}
{{- $sum := 0 }}
{{- $weights := list }}
{{- range $name, $version := $model.versions }}
{{- $sum = add $sum $version.weight }}
{{- $weights = append $weights (printf "%s %d" $name (int $version.weight)) }}
{{- end }}
{{- if ne (int $sum) 100 }}
{{- include "gateway.refuse" (list "weights-sum" (dict "model" $id "weights" (join ", " $weights) "sum" $sum "version" (keys $model.versions | sortAlpha | first))) }}
{{- end }}
{{- $custom := eq $model.task "custom" }}
{{- if and $custom (not $model.operations) }}
{{- include "gateway.refuse" (list "operations-missing" (dict "model" $id)) }}
{{- end }}
{{- if and $model.operations (not $custom) }}
{{- include "gateway.refuse" (list "operations-task" (dict "model" $id "task" $model.task)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Every address leads to one place. Takes (list root values). */ -}}
{{- define "gateway.validateRoutes" -}}
{{- $seen := dict }}
{{- range splitList "\n" (include "gateway.mapRoutes" (dict "v" (index . 1) "tasks" (include "gateway.tasks" . | fromJson)) | trim) }}
{{- $words := splitList " " . }}
{{- $owner := gt (len $words) 4 | ternary (last $words) "every model" }}
{{- with get $seen (first $words) }}
{{- include "gateway.refuse" (list "route-duplicate" (dict "path" (first $words) "model" $owner "other" .)) }}
{{- end }}
{{- $_ := set $seen (first $words) $owner }}
{{- end }}
{{- end }}
