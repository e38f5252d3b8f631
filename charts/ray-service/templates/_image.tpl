{{- /* Image of a worker group. A digest of `image` does not exist in another repository, so it is used only if the
       group sets no repository, tag and digest. */ -}}
{{- define "ray-service.groupImage" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.groupImage" "given" . "names" (list "image" "override")) -}}
{{- $image := .image }}
{{- $own := .override }}
{{- $tag := $own.tag | default $image.tag }}
{{- $digest := ternary $own.digest $image.digest (or $own.repository $own.tag $own.digest | empty | not) }}
{{- include "ray-service.image" (dict "repository" ($own.repository | default $image.repository) "tag" $tag "digest" $digest) }}
{{- end }}

{{- define "ray-service.pullSecrets" -}}
{{- with (include "ray-service.values" . | fromJson).imagePullSecrets -}}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}
