{{- define "gateway.validateBounds" -}}
{{- $v := . }}
{{- $tasks := .root.Files.Get "files/tasks.json" | fromJson }}
{{- range $name, $tenant := .tenants }}
{{- if and $tenant.tokensPerMinute (not (include "gateway.countsTokens" (dict "v" $v "tasks" $tasks "models" $tenant.models))) }}
{{- include "gateway.refuse" (dict "v" $v "id" "token-limit-task" "words" (dict "tenant" $name)) }}
{{- end }}
{{- range $bound := list "maxOutputTokens" "maxBodyBytes" }}
{{- range $model, $most := get $tenant $bound }}
{{- if not (has $model $tenant.models) }}
{{- include "gateway.refuse" (dict "v" $v "id" "bound-model-unknown" "words" (dict "tenant" $name "bound" $bound "model" $model "models" (join ", " $tenant.models))) }}
{{- end }}
{{- if not (int $most) }}
{{- include "gateway.refuse" (dict "v" $v "id" "bound-zero" "words" (dict "tenant" $name "bound" $bound "model" $model)) }}
{{- end }}
{{- $task := (get $v.models $model).task }}
{{- if and (eq $bound "maxBodyBytes") (include "gateway.isUnread" (dict "tasks" $tasks "model" (get $v.models $model))) }}
{{- include "gateway.refuse" (dict "v" $v "id" "bound-body-task" "words" (dict "tenant" $name "model" $model "task" $task)) }}
{{- end }}
{{- if and (eq $bound "maxBodyBytes") (gt (int $most) (int $v.limits.bodyBytes)) }}
{{- include "gateway.refuse" (dict "v" $v "id" "bound-above-body" "words" (dict "tenant" $name "model" $model "bytes" (int $most) "limit" (int $v.limits.bodyBytes))) }}
{{- end }}
{{- $generates := "" }}
{{- range (get $tasks $task).operations }}
{{- $generates = or $generates .output }}
{{- end }}
{{- if and (eq $bound "maxOutputTokens") (not $generates) }}
{{- include "gateway.refuse" (dict "v" $v "id" "bound-output-task" "words" (dict "tenant" $name "model" $model "task" $task)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* `true` if responses of one of these models have a number of tokens. */ -}}
{{- define "gateway.countsTokens" -}}
{{- include "gateway.arguments" (dict "template" "gateway.countsTokens" "given" . "names" (list "v" "tasks" "models")) -}}
{{- $counts := "" }}
{{- range .models }}
{{- range (get $.tasks (get $.v.models .).task).operations }}
{{- $counts = or $counts .reports_usage }}
{{- end }}
{{- end }}
{{- if $counts }}true{{ end }}
{{- end }}
