{{- /* Generated from charts/lib/renamed.tpl by `make generate`. Do not edit. */ -}}
{{- /* Fails on the first key that has a new name since 0.2.0. The schema admits old keys without a type, so that this
       message is what a person reads. Takes the root. */ -}}
{{- define "argocd.refuseRenamed" -}}
{{- $values := .Values | toJson | fromJson }}
{{- range .Files.Get "files/renamed.json" | fromJsonArray }}
{{- include "argocd.findRenamed" (dict "node" $values "parts" (splitList "." .old) "above" list "new" (splitList "." .new) "row" .) }}
{{- end }}
{{- end }}

{{- /* Takes a dict: node, parts of the old key that are left, names above, parts of the new key, row. */ -}}
{{- define "argocd.findRenamed" -}}
{{- include "argocd.arguments" (dict "template" "argocd.findRenamed" "given" . "names" (list "node" "parts" "above" "new" "row")) -}}
{{- $found := . }}
{{- if not .parts }}
{{- $fix := .node }}
{{- range reverse .new }}
{{- $fix = dict . $fix }}
{{- end }}
{{- $fix = .row.fix | default (toYaml $fix) }}
{{- fail (printf "renamed-key: %s: renamed in 0.2.0 to %s\nfix:\n%s" (join "." .above) (join "." .new) (indent 2 $fix)) }}
{{- else if kindIs "map" .node }}
{{- $part := first .parts }}
{{- range $name, $node := .node }}
{{- if has $part (list "*" $name) }}
{{- $new := $found.new }}
{{- if eq $part "*" }}
{{- $at := splitList "*" (join "\x00" $new) }}
{{- $new = splitList "\x00" (printf "%s%s%s" (first $at) $name (rest $at | join "*")) }}
{{- end }}
{{- include "argocd.findRenamed" (dict "node" $node "parts" (rest $found.parts) "above" (append $found.above $name) "new" $new "row" $found.row) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
