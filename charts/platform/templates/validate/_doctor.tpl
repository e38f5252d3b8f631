{{- define "platform.validateDoctor" -}}
{{- $v := . }}
{{- $doctor := .doctor }}
{{- include "platform.validatePod" (dict "v" . "path" "doctor" "pod" $doctor "env" (dict "HOME" "the chart sets it to /tmp, because the root file system is read-only") "volumes" (list "fleet" "tmp") "mounts" (list "/dev" "/proc" "/sys" "/etc/rayhelm" "/tmp" "/var/run/secrets")) }}
{{- range $path := list (list "doctor") (list "metrics" "adapter") (list "probe") }}
{{- $pod := get $v (first $path) }}
{{- range rest $path }}
{{- $pod = get $pod . }}
{{- end }}
{{- include "platform.validatePodSecurity" (dict "v" $v "path" (append $path "podSecurityContext") "given" $pod.podSecurityContext) }}
{{- end }}
{{- if $doctor.enabled }}
{{- $image := $doctor.image }}
{{- if or (not $image.repository) (and (not $image.digest) (has $image.tag (list "" "latest"))) }}
{{- include "platform.refuse" (dict "v" $v "id" "doctor-image" "words" (dict "image" ($image.repository | empty | ternary "" (include "platform.image" $image)))) }}
{{- end }}
{{- if and $doctor.cluster (not $doctor.fleet) }}
{{- include "platform.refuse" (dict "v" $v "id" "doctor-cluster" "words" (dict "cluster" $doctor.cluster)) }}
{{- end }}
{{- end }}
{{- end }}
