{{- /* Generated from charts/lib/refuse-entries.tpl by `make generate`. Do not edit. */ -}}
{{- /* Refuses all bad entries of one map or list at once: the fix of one alone would keep the others. Nothing without bad entries.
       Takes a dict: v, id, bad (a list of dicts: name, and optionally why), words, and optionally given (a map or a list of
       names). Adds the words `names` ("a, b"), `reasons` ("a, b: why; c: why"), `each` ("a: why; b: why; c: why": behind the path of
       the map it is the path of the first entry) and `others` (what is given without them). */ -}}
{{- define "tenant.refuseEntries" -}}
{{- include "tenant.arguments" (dict "template" "tenant.refuseEntries" "given" . "names" (list "v" "id" "bad" "words")) }}
{{- $names := list }}
{{- $each := list }}
{{- $reasons := list }}
{{- $namesOf := dict }}
{{- range .bad }}
{{- $why := get . "why" }}
{{- $names = append $names .name | uniq }}
{{- $each = append $each (printf "%s: %s" .name $why) }}
{{- $reasons = append $reasons $why | uniq }}
{{- $_ := set $namesOf $why (append (get $namesOf $why | default list) .name | uniq) }}
{{- end }}
{{- $texts := list }}
{{- range $reasons }}
{{- $texts = append $texts (printf "%s: %s" (get $namesOf . | join ", ") .) }}
{{- end }}
{{- $others := deepCopy (get . "given" | default dict) }}
{{- range $names }}
{{- if kindIs "map" $others }}
{{- $_ := unset $others . }}
{{- else }}
{{- $others = without $others . }}
{{- end }}
{{- end }}
{{- $words := dict "names" (join ", " $names) "reasons" (join "; " $texts) "each" (join "; " $each) "others" (toJson $others) }}
{{- if .bad }}
{{- include "tenant.refuse" (dict "v" .v "id" .id "words" (merge (deepCopy .words) $words)) }}
{{- end }}
{{- end }}

{{- /* The same for settings of a pod. Takes a dict: args of lib.validatePod, id, bad, at (path of the key, as a list), to (its
       value in the fix). */ -}}
{{- define "tenant.refusePod" -}}
{{- include "tenant.arguments" (dict "template" "tenant.refusePod" "given" . "names" (list "args" "id" "bad" "at" "to")) -}}
{{- $fix := .to }}
{{- range reverse .at }}
{{- $fix = dict . $fix }}
{{- end }}
{{- include "tenant.refuseEntries" (dict "v" .args.v "id" .id "bad" .bad "words" (dict "key" (join "." .at) "yaml" (toYaml $fix))) }}
{{- end }}
