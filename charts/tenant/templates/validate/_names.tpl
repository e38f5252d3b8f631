{{- /* Rules across fields, which the closed schema cannot hold; their words are in files/rules.json. Takes the values
       with `root`. */ -}}
{{- define "tenant.validate" -}}
{{- include "tenant.validateNames" . }}
{{- include "tenant.validateNamespace" . }}
{{- include "tenant.validateQuota" . }}
{{- include "tenant.validatePriority" . }}
{{- include "tenant.validateLimits" . }}
{{- include "tenant.validateNetwork" . }}
{{- include "tenant.validateAccess" . }}
{{- include "tenant.validateQueue" . }}
{{- end }}

{{- define "tenant.validateNames" -}}
{{- $v := . }}
{{- $name := include "tenant.name" .root }}
{{- if gt (len $name) 63 }}
{{- include "tenant.refuse" (dict "v" $v "id" "name-length" "words" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- include "tenant.refuse" (dict "v" $v "id" "name-form" "words" (dict "name" $name)) }}
{{- end }}
{{- end }}

{{- /* Fails where a list has a name twice. Takes a dict: v, path, names. */ -}}
{{- define "tenant.validateOnce" -}}
{{- include "tenant.arguments" (dict "template" "tenant.validateOnce" "given" . "names" (list "v" "path" "names")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $seen := dict }}
{{- range .names }}
{{- if hasKey $seen . }}
{{- include "tenant.refuse" (dict "v" $v "id" "duplicate" "words" (dict "path" $path "name" .)) }}
{{- end }}
{{- $_ := set $seen . true }}
{{- end }}
{{- end }}
