{{- /* repository@digest, or repository:tag without a digest. Takes a dict: repository, tag, digest. */ -}}
{{- define "lib.image" -}}
{{- include "lib.arguments" (dict "template" "lib.image" "given" . "names" (list "repository" "tag" "digest")) -}}
{{ .repository }}{{ .digest | empty | ternary (printf ":%s" .tag) (printf "@%s" .digest) }}
{{- end }}
