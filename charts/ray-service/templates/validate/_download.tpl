{{- /* A Job is complete once all its containers have ended; containers that run beside it are init containers. One fix moves
       them and leaves out all bad ones. Takes a dict: v, args (of ray-service.validatePod). */ -}}
{{- define "ray-service.validateDownloadContainers" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateDownloadContainers" "given" . "names" (list "v" "args")) -}}
{{- $bad := list }}
{{- range .args.pod.extraContainers }}
{{- $why := "a Job runs until all its containers have ended: use `initContainers` with `restartPolicy: Always`" }}
{{- $bad = append $bad (dict "name" .name "why" $why) }}
{{- end }}
{{- $extra := include "ray-service.findBadContainers" (dict "args" .args "containers" .args.pod.extraContainers) | fromJson }}
{{- $init := include "ray-service.findBadContainers" (dict "args" .args "containers" .args.pod.initContainers) | fromJson }}
{{- $beside := $init.kept }}
{{- range $extra.kept }}
{{- $beside = append $beside (set . "restartPolicy" "Always") }}
{{- end }}
{{- $fix := dict "weights" (dict "download" (dict "extraContainers" list "initContainers" $beside)) }}
{{- $words := dict "key" "weights.download.extraContainers" "yaml" (toYaml $fix) }}
{{- include "ray-service.refuseEntries" (dict "v" .v "id" "extra-container" "bad" (concat $bad $extra.bad $init.bad) "words" $words) }}
{{- end }}
