{{- /* Spec of the Job: one init container for each model, then a container that marks the download as complete.
       `program` is the name of the ConfigMap with the program for buckets. */ -}}
{{- define "ray-service.downloadSpec" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.downloadSpec" "given" . "names" (list "root" "v" "program")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $download := $v.weights.download }}
{{- $program := .program }}
{{- $hasBucket := include "ray-service.downloadsFrom" (dict "v" $v "from" "bucket") }}
backoffLimit: {{ int $download.backoffLimit }}
template:
  {{- include "ray-service.patchedPod" (dict "root" $root "path" "weights.download" "pod" $download "text" (include "ray-service.downloadTemplate" .)) | nindent 2 }}
{{- end }}
