{{- /* repository@digest, or repository:tag. Takes a dict with repository, tag, digest: the digest wins. */ -}}
{{- define "ray-service.image" -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ .tag }}
{{- end }}
{{- end }}

{{- /* Image of a worker group: a tag or digest of `image` means nothing in another repository, so it is taken over only
       where the group names neither. Takes (list image override). */ -}}
{{- define "ray-service.groupImage" -}}
{{- $image := index . 0 }}
{{- $own := index . 1 }}
{{- $tag := $own.tag | default $image.tag }}
{{- $digest := ternary $own.digest $image.digest (or $own.repository $own.tag $own.digest | empty | not) }}
{{- include "ray-service.image" (dict "repository" ($own.repository | default $image.repository) "tag" $tag "digest" $digest) }}
{{- end }}

{{- define "ray-service.pullSecrets" -}}
{{- with .Values.image.pullSecrets -}}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end }}
