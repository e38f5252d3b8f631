{{- define "ray-service.validateImages" -}}
{{- $v := . }}
{{- range $name, $group := .workerGroups }}
{{- include "ray-service.validateVendor" (dict "v" $v "name" $name "group" $group) }}
{{- end }}
{{- $images := list (dict "path" (list "image") "image" (include "ray-service.image" .image)) }}
{{- range $name, $group := .workerGroups }}
{{- $images = append $images (dict "path" (list "workerGroups" $name "image") "image" (include "ray-service.groupImage" (dict "image" $v.image "override" $group.image))) }}
{{- end }}
{{- with .weights.download.image }}
{{- $images = append $images (dict "path" (list "weights" "download" "image") "image" .) }}
{{- end }}
{{- with .test.image }}
{{- $images = append $images (dict "path" (list "test" "image") "image" .) }}
{{- end }}
{{- range $images }}
{{- $path := .path }}
{{- $image := .image }}
{{- $named := regexMatch "(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9._-]*)$" $image }}
{{- if or (not $named) (hasSuffix ":latest" $image) }}
{{- $fix := has (first $path) (list "weights" "test") | ternary "registry.example/tools:1.2.3" "{tag: 2.60.0-py312-cu130}" }}
{{- include "ray-service.refuse" (dict "v" $v "id" "image-latest" "words" (dict "path" $path "image" $image "fix" $fix)) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The build of an image, by its name: the stock image is for CUDA, and tags like cu130, rocm7 and xpu name theirs. */ -}}
{{- define "ray-service.validateVendor" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateVendor" "given" . "names" (list "v" "name" "group")) -}}
{{- $builds := dict "nvidia" "CUDA" "amd" "ROCm" "intel" "XPU" }}
{{- $image := include "ray-service.groupImage" (dict "image" .v.image "override" .group.image) }}
{{- $vendor := "" }}
{{- if regexMatch "(^|/)rayproject/ray-llm[:@]|[-_.]cu[0-9]{2,3}([-_.]|$)|cuda" $image }}
{{- $vendor = "nvidia" }}
{{- else if contains "rocm" $image }}
{{- $vendor = "amd" }}
{{- else if regexMatch "[-_.]xpu([-_.:]|$)" $image }}
{{- $vendor = "intel" }}
{{- end }}
{{- if and $vendor .group.gpu.count (ne $vendor .group.gpu.vendor) }}
{{- $build := get $builds .group.gpu.vendor }}
{{- include "ray-service.refuse" (dict "v" .v "id" "image-vendor" "words" (dict "name" .name "image" $image "has" (get $builds $vendor) "vendor" .group.gpu.vendor "build" $build "suffix" (lower $build))) }}
{{- end }}
{{- end }}

{{- /* The settings that head, worker groups and download Job share with the pods of other charts. */ -}}
{{- define "ray-service.validatePods" -}}
{{- $v := . }}
{{- include "ray-service.validatePodSecurity" (dict "v" . "path" (list "podSecurityContext") "given" .podSecurityContext) }}
{{- $reserved := include "ray-service.reservedEnv" . | fromJson }}
{{- $own := dict "volumes" (concat (include "ray-service.modelImageNames" . | fromJsonArray) (list "shm" "tmp" "cache" "vllm-config" "weights" "ray-logs" "shared-mem" "autoscaler" "api-access" "serve-tls" "program")) "mounts" (list "/dev" "/proc" "/sys" "/tmp" "/cache" "/etc/vllm" "/etc/serve-tls" "/etc/rayhelm" "/home/ray/anaconda3" "/var/run/secrets" "/model-images" $v.weights.mountPath) }}
{{- $pods := list (dict "path" "head" "pod" .head "set" (include "ray-service.env" (dict "root" $v.root "v" $v "env" .head.env "groupEnv" (include "ray-service.imageEnv" (dict "image" .image "override" dict) | fromJson)))) }}
{{- range $name, $group := .workerGroups }}
{{- $pods = append $pods (dict "path" (printf "workerGroups.%s" $name) "pod" $group "set" (include "ray-service.env" (dict "root" $v.root "v" $v "env" $group.env "groupEnv" (include "ray-service.groupEnv" (dict "v" $v "group" $group) | fromJson)))) }}
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
{{- $isJob := eq .path "weights.download" }}
{{- $args := merge (dict "v" $v "path" .path "pod" .pod "scraped" (not $isJob) "env" $env) $own }}
{{- if and $isJob .pod.extraContainers }}
{{- include "ray-service.validateDownloadContainers" (dict "v" $v "args" $args) }}
{{- $_ := set $args "pod" (merge (dict "extraContainers" list "initContainers" list) (omit .pod "extraContainers" "initContainers")) }}
{{- end }}
{{- include "ray-service.validatePod" $args }}
{{- end }}
{{- include "ray-service.validateTolerations" (dict "v" $v "path" "weights.download" "tolerations" .weights.download.tolerations) }}
{{- end }}
