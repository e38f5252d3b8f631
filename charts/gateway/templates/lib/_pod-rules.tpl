{{- /* Generated from charts/lib/pod-rules.tpl by `make generate`. Do not edit. */ -}}
{{- /* Fails on settings that Kubernetes, Pod Security `restricted` or the chart refuses. Takes a dict: v, path of the
       settings in the values (empty for the root), pod (the settings), volumes (names that the chart uses), mounts (paths
       that the chart uses), env (name of a variable that the chart sets, and why it is refused), and optionally scraped (true
       for pods that `scraping` finds: an annotation would add a second way). */ -}}
{{- define "gateway.validatePod" -}}
{{- include "gateway.arguments" (dict "template" "gateway.validatePod" "given" . "names" (list "v" "path" "pod" "volumes" "mounts" "env")) }}
{{- $args := . }}
{{- $at := compact (splitList "." .path) }}
{{- $bad := list }}
{{- $kept := deepCopy .pod.podLabels }}
{{- range $label, $_ := .pod.podLabels }}
{{- if regexMatch "(^|\\.)(rayhelm\\.dev|ray\\.io|helm\\.sh|kubernetes\\.io|k8s\\.io)/|^pod-template-hash$" $label }}
{{- $bad = append $bad (dict "name" $label "why" "the chart, KubeRay or Kubernetes owns this label") }}
{{- $_ := unset $kept $label }}
{{- end }}
{{- end }}
{{- include "gateway.refusePod" (dict "args" $args "id" "pod-label" "at" (append $at "podLabels") "to" $kept "bad" $bad) }}
{{- $bad = list }}
{{- $twice := list }}
{{- $kept = deepCopy .pod.podAnnotations }}
{{- range $annotation, $value := .pod.podAnnotations }}
{{- $isOwned := regexMatch "(^|\\.)(rayhelm\\.dev|ray\\.io|helm\\.sh)/|^checksum/" $annotation }}
{{- if or $isOwned (has $annotation (list "cluster-autoscaler.kubernetes.io/safe-to-evict" "karpenter.sh/do-not-disrupt")) }}
{{- $bad = append $bad (dict "name" $annotation "why" "the chart or KubeRay owns this annotation") }}
{{- $_ := unset $kept $annotation }}
{{- else if and (hasPrefix "container.apparmor.security.beta.kubernetes.io/" $annotation) (eq (toString $value) "unconfined") }}
{{- $bad = append $bad (dict "name" $annotation "why" "Pod Security `restricted` refuses `unconfined`") }}
{{- $_ := unset $kept $annotation }}
{{- else if and (get $args "scraped") (hasPrefix "prometheus.io/" $annotation) }}
{{- $twice = append $twice (dict "name" $annotation) }}
{{- $_ := unset $kept $annotation }}
{{- end }}
{{- end }}
{{- include "gateway.refusePod" (dict "args" $args "id" "scrape-annotation" "at" (append $at "podAnnotations") "to" $kept "bad" $twice) }}
{{- include "gateway.refusePod" (dict "args" $args "id" "pod-annotation" "at" (append $at "podAnnotations") "to" $kept "bad" $bad) }}
{{- include "gateway.validateExtraEnv" $args }}
{{- include "gateway.validateExtraVolumes" $args }}
{{- include "gateway.validatePodTemplate" $args }}
{{- end }}

{{- /* Fails on variables of the pod's container. Takes the dict of lib.validatePod. */ -}}
{{- define "gateway.validateExtraEnv" -}}
{{- $args := . }}
{{- $at := compact (splitList "." .path) }}
{{- $bad := list }}
{{- $kept := list }}
{{- $seen := dict }}
{{- range $i, $env := .pod.extraEnv }}
{{- $sources := get $env "valueFrom" | default dict }}
{{- $reasons := list (get $args.env $env.name) }}
{{- if and (include "gateway.givesDevices" (dict "env" $env)) (not (get $args.env $env.name)) }}
{{- $reasons = list "it gives the container GPUs that it did not request" }}
{{- end }}
{{- $reasons = append $reasons (hasKey $seen $env.name | ternary "an earlier entry has the same name" "") }}
{{- $reasons = append $reasons (and (hasKey $env "value") (hasKey $env "valueFrom") | ternary "it has both value and valueFrom" "") }}
{{- if include "gateway.isSecret" (dict "name" $env.name "value" (get $env "value")) }}
{{- $reasons = append $reasons "it is the name of a secret, which everyone who reads the values reads: use valueFrom.secretKeyRef" }}
{{- end }}
{{- $reasons = append $reasons (and (hasKey $env "valueFrom") (ne (len $sources) 1) | ternary "valueFrom needs exactly one source" "") }}
{{- range compact $reasons }}
{{- $bad = append $bad (dict "name" $env.name "why" .) }}
{{- end }}
{{- $kept = compact $reasons | empty | ternary (append $kept $env) $kept }}
{{- $_ := set $seen $env.name true }}
{{- end }}
{{- include "gateway.refusePod" (dict "args" $args "id" "extra-env" "at" (append $at "extraEnv") "to" $kept "bad" $bad) }}
{{- $bad = list }}
{{- $kept = list }}
{{- range $i, $from := .pod.extraEnvFrom }}
{{- if eq (hasKey $from "secretRef") (hasKey $from "configMapRef") }}
{{- $bad = append $bad (dict "name" (printf "entry %d" (add1 $i)) "why" "an entry needs exactly one of secretRef and configMapRef") }}
{{- else }}
{{- $kept = append $kept $from }}
{{- end }}
{{- end }}
{{- include "gateway.refusePod" (dict "args" $args "id" "extra-env-from" "at" (append $at "extraEnvFrom") "to" $kept "bad" $bad) }}
{{- end }}

{{- /* "true" for a variable with the name of a secret and a value that is neither another variable, a switch nor a number.
       Takes a dict: name, value. */ -}}
{{- define "gateway.isSecret" -}}
{{- include "gateway.arguments" (dict "template" "gateway.isSecret" "given" . "names" (list "name" "value")) -}}
{{- $isPublic := or (kindIs "invalid" .value) (regexMatch "^(\\$\\([A-Za-z_][A-Za-z0-9_.-]*\\)|true|false|[0-9]*)$" (toString .value)) }}
{{- if and (not $isPublic) (regexMatch "(?i)(^|[_.-])([a-z0-9]*(apikey|passw(or)?d|passphrase|secret)|key|token|credentials?)$" .name) }}true{{ end }}
{{- end }}
