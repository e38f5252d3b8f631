{{- /* Generated from charts/lib/security.tpl by `make generate`. Do not edit. */ -}}
{{- /* What Pod Security `restricted` requires, and a read-only root file system. */ -}}

{{- /* Security context of every container. */ -}}
{{- define "gateway.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
capabilities:
  drop: [ALL]
{{- end }}

{{- /* Security context of every pod. Takes a dict: ids (podSecurityContext of the values; one that is not there is left
       to the cluster), and optionally fsGroupChangePolicy. */ -}}
{{- define "gateway.podSecurity" -}}
{{- include "gateway.arguments" (dict "template" "gateway.podSecurity" "given" . "names" (list "ids")) -}}
runAsNonRoot: true
{{- $ids := .ids }}
{{- range list "runAsUser" "runAsGroup" "fsGroup" }}
{{- if hasKey $ids . }}
{{ . }}: {{ get $ids . | int64 }}
{{- end }}
{{- end }}
{{- with get . "fsGroupChangePolicy" }}
fsGroupChangePolicy: {{ . }}
{{- end }}
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- /* Fails on other keys. Takes a dict: v, path (of the security context, as a list), given. */ -}}
{{- define "gateway.validatePodSecurity" -}}
{{- include "gateway.arguments" (dict "template" "gateway.validatePodSecurity" "given" . "names" (list "v" "path" "given")) }}
{{- $ids := dict }}
{{- range $name, $id := pick .given "runAsUser" "runAsGroup" "fsGroup" }}
{{- $_ := set $ids $name (int64 $id) }}
{{- end }}
{{- $bad := list }}
{{- $why := "the chart sets all but runAsUser, runAsGroup and fsGroup: Pod Security `restricted` requires it, and another value could only" }}
{{- range $name, $_ := omit .given "runAsUser" "runAsGroup" "fsGroup" }}
{{- $bad = append $bad (dict "name" $name "why" (printf "%s take protection away" $why)) }}
{{- end }}
{{- include "gateway.refusePod" (dict "args" . "id" "pod-security-context" "at" .path "to" $ids "bad" $bad) }}
{{- end }}
