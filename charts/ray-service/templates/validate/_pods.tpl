{{- define "ray-service.validateImages" -}}
{{- $v := . }}
{{- $images := list (list (list "image") (include "ray-service.image" .image)) }}
{{- range $name, $group := .workerGroups }}
{{- $images = append $images (list (list "workerGroups" $name "image") (include "ray-service.groupImage" (list $v.image $group.image))) }}
{{- end }}
{{- with .weights.download.image }}
{{- $images = append $images (list (list "weights" "download" "image") .) }}
{{- end }}
{{- with .test.image }}
{{- $images = append $images (list (list "test" "image") .) }}
{{- end }}
{{- range $images }}
{{- $path := first . }}
{{- $image := last . }}
{{- $named := regexMatch "(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9._-]*)$" $image }}
{{- if or (not $named) (hasSuffix ":latest" $image) }}
{{- $fix := has (first $path) (list "weights" "test") | ternary "registry.example/tools:1.2.3" "{tag: 2.60.0-py312-cu130}" }}
{{- include "ray-service.refuse" (dict "v" $v "id" "image-latest" "words" (dict "path" $path "image" $image "fix" $fix)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The settings that head, worker groups and download Job share with the pods of other charts. */ -}}
{{- define "ray-service.validatePods" -}}
{{- $v := . }}
{{- $reserved := include "ray-service.reservedEnv" . | fromJson }}
{{- $own := dict "volumes" (list "shm" "tmp" "cache" "vllm-config" "weights" "ray-logs" "shared-mem") "mounts" (list "/dev" "/proc" "/sys" "/tmp" "/cache" "/etc/vllm" "/home/ray/anaconda3" "/var/run/secrets" $v.weights.mountPath) }}
{{- $pods := list (dict "path" "head" "pod" .head "set" (include "ray-service.env" (list $v .head.env (include "ray-service.imageEnv" (list .image dict) | fromJson)))) }}
{{- range $name, $group := .workerGroups }}
{{- $pods = append $pods (dict "path" (printf "workerGroups.%s" $name) "pod" $group "set" (include "ray-service.env" (list $v $group.env (include "ray-service.groupEnv" (list $v $group) | fromJson)))) }}
{{- end }}
{{- $pods = append $pods (dict "path" "weights.download" "pod" .weights.download "set" (include "ray-service.envList" (include "ray-service.downloadEnv" . | fromJson))) }}
{{- range $pods }}
{{- $env := dict }}
{{- if .pod.extraEnv }}
{{- $env = deepCopy $reserved }}
{{- range .set | fromYamlArray }}
{{- $_ := set $env .name "the chart or `env` sets it" }}
{{- end }}
{{- end }}
{{- include "ray-service.validatePod" (merge (dict "v" $v "path" .path "pod" .pod "env" $env) $own) }}
{{- end }}
{{- include "ray-service.validateTolerations" (list $v "weights.download" .weights.download.tolerations) }}
{{- end }}
