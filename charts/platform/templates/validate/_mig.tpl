{{- /* Compares layouts with the largest layouts of a GPU, which are in files/mig.json. Takes a dict:
       v, path, name, pool. */ -}}
{{- define "platform.validateMig" -}}
{{- include "platform.arguments" (dict "template" "platform.validateMig" "given" . "names" (list "v" "path" "name" "pool")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $name := .name }}
{{- $pool := .pool }}
{{- $known := $v.root.Files.Get "files/mig.json" | fromJson }}
{{- $table := get $known.gpus $pool.gpu }}
{{- if not $table }}
{{- include "platform.refuse" (dict "v" $v "id" "mig-gpu" "words" (dict "path" $path "gpu" ($pool.gpu | default "an empty name") "known" (keys $known.gpus | sortAlpha | join ", ") "name" $name)) }}
{{- end }}
{{- $largest := get $known.layouts $table }}
{{- $profiles := dict }}
{{- range $largest }}
{{- range $profile, $count := . }}
{{- $_ := set $profiles $profile (max (int $count) (get $profiles $profile | default 0 | int)) }}
{{- end }}
{{- end }}
{{- $bad := list }}
{{- range $profile, $count := $pool.mig }}
{{- if not (hasKey $profiles $profile) }}
{{- $bad = append $bad (dict "name" $profile) }}
{{- end }}
{{- end }}
{{- $sorted := keys $profiles | sortAlpha }}
{{- $words := dict "path" $path "gpu" $pool.gpu "known" (join ", " $sorted) "one" (first $sorted) }}
{{- include "platform.refuseEntries" (dict "v" $v "id" "mig-profile" "bad" $bad "words" $words) }}
{{- $asked := 0 }}
{{- $layoutText := list }}
{{- range $profile, $count := $pool.mig }}
{{- $asked = add $asked $count }}
{{- $layoutText = append $layoutText (printf "%d x %s" (int $count) $profile) }}
{{- end }}
{{- $most := 0 }}
{{- $nearest := dict }}
{{- range $layout := $largest }}
{{- $kept := dict }}
{{- $sum := 0 }}
{{- range $profile, $count := $pool.mig }}
{{- $here := min (int $count) (get $layout $profile | default 0 | int) }}
{{- if gt $here 0 }}
{{- $_ := set $kept $profile $here }}
{{- end }}
{{- $sum = add $sum $here }}
{{- end }}
{{- if gt $sum $most }}
{{- $most = $sum }}
{{- $nearest = $kept }}
{{- end }}
{{- end }}
{{- if and (not $bad) (lt $most $asked) }}
{{- $removed := "" }}
{{- range $profile, $_ := $pool.mig }}
{{- if not (hasKey $nearest $profile) }}
{{- $removed = printf "%s, without %s" $removed $profile }}
{{- end }}
{{- end }}
{{- include "platform.refuse" (dict "v" $v "id" "mig-capacity" "words" (dict "path" $path "gpu" $pool.gpu "layout" (join " + " $layoutText) "name" $name "nearest" ($nearest | toJson) "removed" $removed)) }}
{{- end }}
{{- end }}
