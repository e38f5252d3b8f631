{{- /* Generated from charts/lib/refuse.tpl by `make generate`. Do not edit. */ -}}
{{- /* Adds "<rule>: <key>: <message>" and the fix to the refusals, where the rule holds for the version of KubeRay in the
       values. `lib.failRefused` fails with all of them; a rule without which the next checks cannot run
       fails at once, and so does a refusal of a template that renders after the validation.
       Takes a dict: v (the values with `root`), id of the rule, words that fill its braces. A word that is a list is a path
       whose names may contain dots; a fix that starts with a path is written as nested YAML. */ -}}
{{- define "gateway.refuse" -}}
{{- include "gateway.arguments" (dict "template" "gateway.refuse" "given" . "names" (list "v" "id" "words")) }}
{{- $rule := get (.v.root.Files.Get "files/rules.json" | fromJson) .id }}
{{- $version := dig "kuberay" "version" "" .v }}
{{- $before := and $rule.since (semverCompare (printf "<%s" $rule.since) $version) }}
{{- $after := and $rule.until (semverCompare (printf ">%s" $rule.until) $version) }}
{{- if not (or $before $after) }}
{{- $message := prepend (compact (list $rule.key)) $rule.message | reverse | join ": " }}
{{- $fix := trim $rule.fix }}
{{- $above := list }}
{{- range $key, $value := .words }}
{{- $word := kindIs "string" $value | ternary $value ($value | toJson) }}
{{- if kindIs "slice" $value }}
{{- $word = join "." $value }}
{{- if hasPrefix (printf "{%s}: " $key) $fix }}
{{- $above = $value }}
{{- $fix = trimPrefix (printf "{%s}: " $key) $fix }}
{{- end }}
{{- end }}
{{- $message = replace (printf "{%s}" $key) $word $message }}
{{- $fix = replace (printf "{%s}" $key) $word $fix }}
{{- end }}
{{- range $i, $name := reverse $above }}
{{- $fix = printf "%s:%s%s" (dict $name "" | toYaml | trimSuffix ": \"\"") (gt $i 0 | ternary "\n" " ") (gt $i 0 | ternary (indent 2 $fix) $fix) }}
{{- end }}
{{- $_ := set .v.root "refusals" (append (.v.root.refusals | default list) (printf "%s: %s\nfix:\n%s" .id $message (indent 2 $fix)) | uniq) }}
{{- if or $rule.ends (hasKey .v.root "validated") }}
{{- include "gateway.failRefused" .v.root }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Fails with everything that was refused, if there is any. Takes the root. */ -}}
{{- define "gateway.failRefused" -}}
{{- with .refusals }}
{{- fail (join "\n" .) }}
{{- end }}
{{- end }}

{{- /* Fails if an argument of a template is missing: Helm would render nothing in its place. Takes a dict: template (its name),
       given (its arguments), names (of the required arguments). */ -}}
{{- define "gateway.arguments" -}}
{{- $call := . }}
{{- range .names }}
{{- if not (hasKey $call.given .) }}
{{- fail (printf "template %s: the argument %q is missing" $call.template .) }}
{{- end }}
{{- end }}
{{- end }}
