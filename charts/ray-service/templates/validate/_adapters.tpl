{{- /* LoRA adapters of a model. */ -}}
{{- define "ray-service.validateAdapters" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateAdapters" "given" . "names" (list "v" "path" "model" "taken")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $model := .model }}
{{- $taken := .taken }}
{{- with $model.lora.adapters }}
{{- if ne $model.task "chat" }}
{{- include "ray-service.refuse" (dict "v" $v "id" "adapter-task" "words" (dict "path" $path "task" $model.task)) }}
{{- end }}
{{- if not $v.image.includesRayhelm }}
{{- include "ray-service.refuse" (dict "v" $v "id" "adapter-image" "words" (dict "path" $path "image" (list "image"))) }}
{{- end }}
{{- range $name, $group := $v.workerGroups }}
{{- if not (include "ray-service.hasRayhelm" (dict "image" $v.image "override" $group.image)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "adapter-image" "words" (dict "path" $path "image" (list "workerGroups" $name "image"))) }}
{{- end }}
{{- end }}
{{- end }}
{{- range $name, $adapter := $model.lora.adapters }}
{{- $here := concat $path (list "lora" "adapters" $name) }}
{{- if has $name $taken }}
{{- include "ray-service.refuse" (dict "v" $v "id" "adapter-duplicate" "words" (dict "path" (concat $path (list "lora" "adapters")) "name" $name "adapter" (pick $adapter "source" "revision"))) }}
{{- end }}
{{- if and (hasPrefix "/" $adapter.source) $adapter.revision }}
{{- include "ray-service.refuse" (dict "v" $v "id" "adapter-path" "words" (dict "path" $here "source" $adapter.source)) }}
{{- else if not (or (hasPrefix "/" $adapter.source) $adapter.revision) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "adapter-revision" "words" (dict "path" $here "source" $adapter.source)) }}
{{- else if not (or (hasPrefix "/" $adapter.source) $v.weights.enabled) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "adapter-weights" "words" (dict "path" $here "source" $adapter.source)) }}
{{- end }}
{{- end }}
{{- end }}
