{{- /* A Job is complete once all its containers have ended; containers that run beside it are init containers. */ -}}
{{- define "ray-service.validateDownloadContainers" -}}
{{- $download := .weights.download }}
{{- with $download.extraContainers }}
{{- $why := "a Job runs until all its containers have ended: use `initContainers` with `restartPolicy: Always`" }}
{{- $bad := list }}
{{- $beside := $download.initContainers }}
{{- range . }}
{{- $bad = append $bad (dict "name" .name "why" $why) }}
{{- $beside = append $beside (set (deepCopy .) "restartPolicy" "Always") }}
{{- end }}
{{- $fix := dict "weights" (dict "download" (dict "extraContainers" list "initContainers" $beside)) }}
{{- include "ray-service.refuseEntries" (dict "v" $ "id" "extra-container" "bad" $bad "words" (dict "key" "weights.download.extraContainers" "yaml" (toYaml $fix))) }}
{{- end }}
{{- end }}
