{{- /* Generated from charts/lib/refuse.tpl by `make generate`. Do not edit. */ -}}
{{- /* Fails with "<rule>: <key>: <message>" and the fix, where the rule holds for the version of KubeRay in the values.
       Takes a dict: v (the values with `root`), id of the rule, words that fill its braces. */ -}}
{{- define "tenant.refuse" -}}
{{- include "tenant.arguments" (list "refuse" . "v" "id" "words") }}
{{- $rule := get (.v.root.Files.Get "files/rules.json" | fromJson) .id }}
{{- $version := dig "kuberay" "version" "" .v }}
{{- $before := and $rule.since (semverCompare (printf "<%s" $rule.since) $version) }}
{{- $after := and $rule.until (semverCompare (printf ">%s" $rule.until) $version) }}
{{- if not (or $before $after) }}
{{- $text := printf "%s: %s" .id (prepend (compact (list $rule.key)) $rule.message | reverse | join ": ") }}
{{- $text = printf "%s\nfix:\n%s" $text ($rule.fix | trim | indent 2) }}
{{- range $key, $value := .words }}
{{- $text = replace (printf "{%s}" $key) (kindIs "string" $value | ternary $value ($value | toJson)) $text }}
{{- end }}
{{- fail $text }}
{{- end }}
{{- end }}

{{- /* Fails where an argument of a template is missing: Helm would render nothing in its place.
       Takes (list template arguments name...). */ -}}
{{- define "tenant.arguments" -}}
{{- $template := index . 0 }}
{{- $given := index . 1 }}
{{- range slice . 2 }}
{{- if not (hasKey $given .) }}
{{- fail (printf "template lib.%s: the argument %q is missing" $template .) }}
{{- end }}
{{- end }}
{{- end }}
