{{- /* Generated from charts/lib/image.tpl by `make generate`. Do not edit. */ -}}
{{- /* repository@digest, or repository:tag without a digest. Takes a dict: repository, tag, digest. */ -}}
{{- define "argocd.image" -}}
{{- include "argocd.arguments" (dict "template" "argocd.image" "given" . "names" (list "repository" "tag" "digest")) -}}
{{ .repository }}{{ .digest | empty | ternary (printf ":%s" .tag) (printf "@%s" .digest) }}
{{- end }}
