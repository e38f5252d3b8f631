{{- /* Generated from charts/lib/volume-rules.tpl by `make generate`. Do not edit. */ -}}
{{- /* Fails on volumes and where they are mounted. Takes the dict of lib.validatePod. */ -}}
{{- define "tenant.validateExtraVolumes" -}}
{{- $args := . }}
{{- $at := compact (splitList "." .path) }}
{{- $bad := list }}
{{- $kept := list }}
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
{{- range get (get $volume "projected" | default dict) "sources" | default list }}
{{- $token := hasKey . "serviceAccountToken" | ternary (get . "serviceAccountToken" | default dict) (dict "audience" "none") }}
{{- $audience := get $token "audience" | default "kubernetes.default" }}
{{- $signer := get (get . "podCertificate" | default dict) "signerName" | default "" }}
{{- $isOfApi := or (contains "kubernetes.default" $audience) (hasPrefix "kubernetes.io/" $signer) }}
{{- $reasons = append $reasons ($isOfApi | ternary "it has credentials for the API server, and the chart gives the pod none: write the `audience` of another service" "") }}
{{- end }}
{{- range compact $reasons }}
{{- $bad = append $bad (dict "name" $volume.name "why" .) }}
{{- end }}
{{- $kept = compact $reasons | empty | ternary (append $kept $volume) $kept }}
{{- $_ := set $volumes $volume.name true }}
{{- end }}
{{- include "tenant.refusePod" (dict "args" $args "id" "extra-volume" "at" (append $at "extraVolumes") "to" $kept "bad" $bad) }}
{{- $bad = list }}
{{- $kept = list }}
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
{{- $bad = append $bad (dict "name" $mount.mountPath "why" .) }}
{{- end }}
{{- $kept = compact $reasons | empty | ternary (append $kept $mount) $kept }}
{{- $taken = append $taken $mount.mountPath }}
{{- end }}
{{- include "tenant.refusePod" (dict "args" $args "id" "extra-volume-mount" "at" (append $at "extraVolumeMounts") "to" $kept "bad" $bad) }}
{{- end }}
