{{- /* Generated from charts/lib/registry.tpl by `make generate`. Do not edit. */ -}}
{{- /* `global.imageRegistry` and `global.imagePullSecrets`: set in the values once, so that each template that reads an image
       has its final name. */ -}}

{{- /* Name of an image below a registry, as `rayhelm images --mirror` writes it: the first registry stays in the path, so
       that no two images get the same name. Takes a dict: registry, image. */ -}}
{{- define "ray-service.inRegistry" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.inRegistry" "given" . "names" (list "registry" "image")) }}
{{- $parts := splitList "/" .image }}
{{- $host := first $parts }}
{{- $hasHost := and (gt (len $parts) 1) (or (contains "." $host) (contains ":" $host) (eq $host "localhost")) }}
{{- if or (empty .image) (hasPrefix (printf "%s/" .registry) .image) }}
{{- .image }}
{{- else if $hasHost }}
{{- prepend (rest $parts) (replace ":" "-" $host) | join "/" | printf "%s/%s" .registry }}
{{- else }}
{{- printf "%s/docker.io/%s%s" .registry (gt (len $parts) 1 | ternary "" "library/") .image }}
{{- end }}
{{- end }}

{{- /* Renames the images, and adds the pull secrets. The chart names the paths of both. Takes the values, and changes
       them. */ -}}
{{- define "ray-service.setPullSettings" -}}
{{- $global := .global }}
{{- $paths := include "ray-service.pullPaths" . | fromJson }}
{{- $secrets := list }}
{{- range $global.imagePullSecrets }}
{{- $secrets = append $secrets (kindIs "string" . | ternary (dict "name" .) .) }}
{{- end }}
{{- $_ := set $global "imagePullSecrets" $secrets }}
{{- range $path := $global.imageRegistry | empty | ternary list $paths.images }}
{{- include "ray-service.setAt" (dict "node" $ "path" $path "registry" $global.imageRegistry "secrets" list) }}
{{- end }}
{{- range $path := $secrets | empty | ternary list $paths.secrets }}
{{- include "ray-service.setAt" (dict "node" $ "path" $path "registry" "" "secrets" $secrets) }}
{{- end }}
{{- end }}

{{- /* Takes a dict: node, path (`*` for each key of a map), registry (empty: a list of secrets is at the path), secrets. */ -}}
{{- define "ray-service.setAt" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.setAt" "given" . "names" (list "node" "path" "registry" "secrets")) -}}
{{- $part := first .path }}
{{- $below := rest .path }}
{{- range $name, $value := .node }}
{{- if not (has $part (list "*" $name)) }}
{{- else if $below }}
{{- include "ray-service.setAt" (dict "node" $value "path" $below "registry" $.registry "secrets" $.secrets) }}
{{- else if not $.registry }}
{{- $_ := set $.node $name (concat $value $.secrets | uniq) }}
{{- else if kindIs "slice" $value }}
{{- $images := list }}
{{- range $value }}
{{- $images = append $images (include "ray-service.inRegistry" (dict "registry" $.registry "image" .)) }}
{{- end }}
{{- $_ := set $.node $name $images }}
{{- else if kindIs "map" $value }}
{{- /* An operand of NVIDIA's operator: the repository is only the path before the name. */}}
{{- $full := printf "%s/%s" $value.repository $value.image }}
{{- $_ := set $value "repository" (include "ray-service.inRegistry" (dict "registry" $.registry "image" $full) | trimSuffix (printf "/%s" $value.image)) }}
{{- else }}
{{- $_ := set $.node $name (include "ray-service.inRegistry" (dict "registry" $.registry "image" $value)) }}
{{- end }}
{{- end }}
{{- end }}
