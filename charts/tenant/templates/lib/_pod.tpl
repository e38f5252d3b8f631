{{- /* Generated from charts/lib/pod.tpl by `make generate`. Do not edit. */ -}}
{{- /* Settings of pods in Kubernetes' shape: podLabels, podAnnotations, affinity, topologySpreadConstraints, extraEnv,
       extraEnvFrom, extraVolumes and extraVolumeMounts. Without them these templates render nothing, so that a default
       changes no pod: any change of a Ray pod template makes KubeRay build a second cluster. */ -}}

{{- /* Fails on settings that Kubernetes, Pod Security `restricted` or the chart refuses. Takes a dict: v, path of the
       settings in the values (empty for the root), pod (the settings), volumes (names that the chart uses), mounts (paths
       that the chart uses), env (name of a variable that the chart sets, and why it is refused). */ -}}
{{- define "tenant.validatePod" -}}
{{- include "tenant.arguments" (dict "template" "tenant.validatePod" "given" . "names" (list "v" "path" "pod" "volumes" "mounts" "env")) }}
{{- $args := . }}
{{- $at := compact (splitList "." .path) }}
{{- range $label, $_ := .pod.podLabels }}
{{- if regexMatch "(^|\\.)(rayhelm\\.dev|ray\\.io|helm\\.sh|kubernetes\\.io|k8s\\.io)/|^pod-template-hash$" $label }}
{{- include "tenant.refusePod" (dict "args" $args "id" "pod-label" "name" $label "at" (append $at "podLabels") "to" (omit $args.pod.podLabels $label) "why" "the chart, KubeRay or Kubernetes owns this label") }}
{{- end }}
{{- end }}
{{- range $annotation, $_ := .pod.podAnnotations }}
{{- if regexMatch "(^|\\.)(rayhelm\\.dev|ray\\.io|helm\\.sh)/|^checksum/|^cluster-autoscaler\\.kubernetes\\.io/safe-to-evict$|^karpenter\\.sh/do-not-disrupt$" $annotation }}
{{- include "tenant.refusePod" (dict "args" $args "id" "pod-annotation" "name" $annotation "at" (append $at "podAnnotations") "to" (omit $args.pod.podAnnotations $annotation) "why" "the chart or KubeRay owns this annotation") }}
{{- end }}
{{- end }}
{{- $seen := dict }}
{{- range $i, $env := .pod.extraEnv }}
{{- $sources := get $env "valueFrom" | default dict }}
{{- $reasons := list (get $args.env $env.name) }}
{{- $reasons = append $reasons (hasKey $seen $env.name | ternary "an earlier entry has the same name" "") }}
{{- $reasons = append $reasons (and (hasKey $env "value") (hasKey $env "valueFrom") | ternary "it has both value and valueFrom" "") }}
{{- $reasons = append $reasons (include "tenant.isSecret" (dict "name" $env.name "value" (get $env "value")) | empty | ternary "" "it is the name of a secret, which everyone who reads the values reads: use valueFrom.secretKeyRef") }}
{{- $reasons = append $reasons (and (hasKey $env "valueFrom") (ne (len $sources) 1) | ternary "valueFrom needs exactly one source" "") }}
{{- range compact $reasons }}
{{- include "tenant.refusePod" (dict "args" $args "id" "extra-env" "name" $env.name "at" (append $at "extraEnv") "to" (without $args.pod.extraEnv $env) "why" .) }}
{{- end }}
{{- $_ := set $seen $env.name true }}
{{- end }}
{{- range .pod.extraEnvFrom }}
{{- if eq (hasKey . "secretRef") (hasKey . "configMapRef") }}
{{- include "tenant.refusePod" (dict "args" $args "id" "extra-env-from" "at" (append $at "extraEnvFrom") "to" (without $args.pod.extraEnvFrom .) "why" "an entry needs exactly one of secretRef and configMapRef") }}
{{- end }}
{{- end }}
{{- $volumes := dict }}
{{- $allowed := list "configMap" "csi" "downwardAPI" "emptyDir" "ephemeral" "persistentVolumeClaim" "projected" "secret" }}
{{- range $volume := .pod.extraVolumes }}
{{- $sources := omit $volume "name" | keys | sortAlpha }}
{{- $reasons := list (has $volume.name $args.volumes | ternary "the chart has a volume of this name" "") }}
{{- $reasons = append $reasons (hasKey $volumes $volume.name | ternary "an earlier entry has the same name" "") }}
{{- $reasons = append $reasons (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" $volume.name | ternary "" "its name is not a DNS label") }}
{{- $reasons = append $reasons (eq (len $sources) 1 | ternary "" "it needs exactly one type") }}
{{- range $sources }}
{{- $reasons = append $reasons (has . $allowed | ternary "" (printf "Pod Security `restricted` refuses the type %s (allowed: %s)" . (join ", " $allowed))) }}
{{- end }}
{{- range compact $reasons }}
{{- include "tenant.refusePod" (dict "args" $args "id" "extra-volume" "name" $volume.name "at" (append $at "extraVolumes") "to" (without $args.pod.extraVolumes $volume) "why" .) }}
{{- end }}
{{- $_ := set $volumes $volume.name true }}
{{- end }}
{{- $taken := .mounts }}
{{- range $mount := .pod.extraVolumeMounts }}
{{- $path := printf "%s/" (trimSuffix "/" $mount.mountPath) }}
{{- $reasons := list (hasKey $volumes $mount.name | ternary "" (printf "extraVolumes has no volume %s" $mount.name)) }}
{{- $reasons = append $reasons (hasPrefix "/" $mount.mountPath | ternary "" "mountPath is not absolute") }}
{{- $reasons = append $reasons (regexMatch "(^|/)\\.\\.(/|$)|:" $mount.mountPath | ternary "mountPath has `..` or a colon" "") }}
{{- range $taken }}
{{- $own := printf "%s/" (trimSuffix "/" .) }}
{{- $reasons = append $reasons (or (hasPrefix $own $path) (hasPrefix $path $own) | ternary (printf "it would hide or change %s, which the pod uses" .) "") }}
{{- end }}
{{- range compact $reasons }}
{{- include "tenant.refusePod" (dict "args" $args "id" "extra-volume-mount" "name" $mount.mountPath "at" (append $at "extraVolumeMounts") "to" (without $args.pod.extraVolumeMounts $mount) "why" .) }}
{{- end }}
{{- $taken = append $taken $mount.mountPath }}
{{- end }}
{{- end }}

{{- /* "true" for a variable with the name of a secret and a value that is neither another variable, a switch nor a number.
       Takes a dict: name, value. */ -}}
{{- define "tenant.isSecret" -}}
{{- include "tenant.arguments" (dict "template" "tenant.isSecret" "given" . "names" (list "name" "value")) -}}
{{- $isPublic := or (kindIs "invalid" .value) (regexMatch "^(\\$\\([A-Za-z_][A-Za-z0-9_.-]*\\)|true|false|[0-9]*)$" (toString .value)) }}
{{- if and (not $isPublic) (regexMatch "(?i)(^|[_.-])([a-z0-9]*(apikey|passw(or)?d|passphrase|secret)|key|token|credentials?)$" .name) }}true{{ end }}
{{- end }}

{{- /* Takes a dict: args of validatePod, id, name (of the entry), at (path of the key, as a list), to (its value in the fix),
       why. */ -}}
{{- define "tenant.refusePod" -}}
{{- include "tenant.arguments" (dict "template" "tenant.refusePod" "given" . "names" (list "args" "id" "at" "to" "why")) -}}
{{- $fix := .to }}
{{- range reverse .at }}
{{- $fix = dict . $fix }}
{{- end }}
{{- $words := dict "key" (join "." .at) "name" (get . "name" | default "") "why" .why "yaml" (toYaml $fix) }}
{{- include "tenant.refuse" (dict "v" .args.v "id" .id "words" $words) }}
{{- end }}

{{- /* Takes a dict: pod, selector (YAML of matchLabels). Entries of a list. */ -}}
{{- define "tenant.spreadConstraints" -}}
{{- include "tenant.arguments" (dict "template" "tenant.spreadConstraints" "given" . "names" (list "pod" "selector")) }}
{{- $own := dict "matchLabels" (.selector | fromYaml) }}
{{- range .pod.topologySpreadConstraints }}
{{ list (hasKey . "labelSelector" | ternary . (set (deepCopy .) "labelSelector" $own)) | toYaml }}
{{- end }}
{{- end }}

{{- /* Entries of `env`. Takes the settings of a pod. */ -}}
{{- define "tenant.extraEnv" -}}
{{- range .extraEnv }}
{{- $env := deepCopy . }}
{{- if hasKey . "value" }}
{{- $_ := set $env "value" (kindIs "string" .value | ternary .value (.value | toJson)) }}
{{- end }}
{{ list $env | toYaml }}
{{- end }}
{{- end }}
