{{- /* A name belongs to one model. Takes the values, and takes refused aliases out of them. */ -}}
{{- define "gateway.validateAliases" -}}
{{- $v := . }}
{{- $named := dict }}
{{- range $id, $model := .models }}
{{- $bad := list }}
{{- $kept := list }}
{{- range $model.aliases }}
{{- if or (hasKey $v.models .) (hasKey $named .) }}
{{- $bad = append $bad (dict "name" .) }}
{{- else }}
{{- $kept = append $kept . }}
{{- end }}
{{- $_ := set $named . true }}
{{- end }}
{{- include "gateway.refuseEntries" (dict "v" $v "id" "alias-duplicate" "bad" $bad "words" (dict "model" $id "kept" (toJson $kept))) }}
{{- /* Each alias has a route: validateRoutes would refuse the same names again. */}}
{{- $_ := set $model "aliases" $kept }}
{{- end }}
{{- end }}

{{- /* Each model has a tenant. Takes the values. */ -}}
{{- define "gateway.validateModelTenants" -}}
{{- $allowed := list }}
{{- range .tenants }}
{{- $allowed = concat $allowed .models }}
{{- end }}
{{- /* Under `helm lint` a refusal does not end the validation: without tenants it goes on. */}}
{{- $first := keys .tenants | sortAlpha | first | default "" }}
{{- $models := (get .tenants $first | default dict).models | default (keys .models | sortAlpha) }}
{{- $bad := list }}
{{- range $id, $_ := .models }}
{{- if not (has $id $allowed) }}
{{- $bad = append $bad (dict "name" $id "why" "no tenant may use this model") }}
{{- $models = append $models $id | uniq }}
{{- end }}
{{- end }}
{{- $words := dict "tenant" $first "models" (toJson $models) }}
{{- include "gateway.refuseEntries" (dict "v" . "id" "model-without-tenant" "bad" $bad "words" $words) }}
{{- end }}
