{{- /* Generated from charts/lib/pod-template-rules.tpl by `make generate`. Do not edit. */ -}}
{{- /* Fails on a patch or a container that the chart refuses. Takes the dict of lib.validatePod. */ -}}
{{- define "platform.validatePodTemplate" -}}
{{- $args := . }}
{{- $at := compact (splitList "." .path) }}
{{- $fields := include "platform.patchableFields" . | fromYaml }}
{{- $patch := .pod.podTemplate }}
{{- $given := dict "podTemplate" (list (dict "name" "podTemplate" "fields" $patch "allowed" (list "spec")) (dict "name" "spec" "fields" (get $patch "spec" | default dict) "allowed" (concat $fields.spec (list "containers" "initContainers")))) }}
{{- range $kind := list "containers" "initContainers" }}
{{- range dig "spec" $kind list $patch }}
{{- $_ := set $given "podTemplate" (append $given.podTemplate (dict "name" .name "fields" . "allowed" $fields.patch)) }}
{{- end }}
{{- end }}
{{- $bad := list }}
{{- range $part := $given.podTemplate }}
{{- range $field, $value := $part.fields }}
{{- $why := has $field $part.allowed | ternary "" (printf "only %s can be patched. The chart sets all else, and another value could take a security setting away" (join ", " $part.allowed)) }}
{{- $isWhole := has $field (list "spec" "containers" "initContainers") }}
{{- $others := eq $field "resources" | ternary (include "platform.otherResources" (dict "resources" $value "allowed" (list "ephemeral-storage"))) "" }}
{{- if $others }}
{{- $why = printf "only ephemeral-storage of `limits` and `requests` can be patched, not %s: `resources` of the values sets the others" $others }}
{{- else if contains "null" (regexReplaceAll "\"(\\\\.|[^\"\\\\])*\"" ($isWhole | ternary "" (toJson $value)) "") }}
{{- $why = "null is no value of a patch: it could take away what the chart sets" }}
{{- else if contains "\"host\":" (hasSuffix "Probe" $field | ternary (toJson $value) "") }}
{{- $why = "Pod Security refuses a probe with a host" }}
{{- end }}
{{- with $why }}
{{- $bad = append $bad (dict "name" (printf "%s.%s" $part.name $field) "why" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- include "platform.refusePod" (dict "args" $args "id" "pod-template" "at" (append $at "podTemplate") "to" dict "bad" $bad) }}
{{- range $key := list "extraContainers" "initContainers" }}
{{- $found := include "platform.findBadContainers" (dict "args" $args "containers" (get $args.pod $key)) | fromJson }}
{{- include "platform.refusePod" (dict "args" $args "id" "extra-container" "at" (append $at $key) "to" $found.kept "bad" $found.bad) }}
{{- end }}
{{- end }}

{{- /* JSON of what is wrong with containers (`bad`: name, why) and of the others (`kept`). Takes a dict: args of
       lib.validatePod, containers. */ -}}
{{- define "platform.findBadContainers" -}}
{{- include "platform.arguments" (dict "template" "platform.findBadContainers" "given" . "names" (list "args" "containers")) -}}
{{- $args := .args }}
{{- $fields := include "platform.patchableFields" $args | fromYaml }}
{{- $volumes := dict }}
{{- range .args.pod.extraVolumes }}
{{- $_ := set $volumes .name true }}
{{- end }}
{{- $bad := list }}
{{- $kept := list }}
{{- range $container := .containers }}
{{- $context := get . "securityContext" | default dict }}
{{- $reasons := list (regexMatch "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$" .name | ternary "" "its name is not a DNS label") }}
{{- $reasons = append $reasons (regexMatch "(@sha256:[0-9a-f]{64}|:[A-Za-z0-9_][A-Za-z0-9._-]*)$" .image | ternary "" "its image has no tag and no digest") }}
{{- $reasons = append $reasons (hasSuffix ":latest" .image | ternary "its image has the tag `latest`" "") }}
{{- $reasons = append $reasons (has .name (list "autoscaler" "wait-gcs-ready") | ternary "KubeRay adds a container of this name" "") }}
{{- range $field, $value := . }}
{{- $reasons = append $reasons (has $field $fields.container | ternary "" (printf "%s is not allowed (allowed: %s)" $field (join ", " $fields.container))) }}
{{- $others := eq $field "resources" | ternary (include "platform.otherResources" (dict "resources" $value "allowed" $fields.resources)) "" }}
{{- $reasons = append $reasons (empty $others | ternary "" (printf "its `resources` has %s, and only %s of `limits` and `requests` are allowed: the plan counts GPUs and other devices of the chart's containers only" $others (join ", " $fields.resources))) }}
{{- $reasons = append $reasons (contains "\"host\":" (hasSuffix "Probe" $field | ternary (toJson $value) "") | ternary "Pod Security refuses a probe with a host" "") }}
{{- end }}
{{- range $field, $value := $context }}
{{- $reasons = append $reasons (has $field $fields.securityContext | ternary "" (printf "the chart sets securityContext.%s: Pod Security `restricted` requires it" $field)) }}
{{- end }}
{{- $reasons = append $reasons (eq (toString (get $context "runAsUser")) "0" | ternary "Pod Security `restricted` refuses root" "") }}
{{- $reasons = append $reasons (contains "\"hostPort\":" (toJson (get . "ports")) | ternary "Pod Security refuses hostPort" "") }}
{{- range get . "volumeMounts" | default list }}
{{- $reasons = append $reasons (hasKey $volumes .name | ternary "" (printf "it mounts %s, which is not one of extraVolumes" .name)) }}
{{- end }}
{{- range get . "env" | default list }}
{{- $reasons = append $reasons (include "platform.isSecret" (dict "name" .name "value" (get . "value")) | empty | ternary "" (printf "%s is the name of a secret: use valueFrom.secretKeyRef" .name)) }}
{{- $reasons = append $reasons (include "platform.givesDevices" (dict "env" .) | empty | ternary "" (printf "%s gives it GPUs that it did not request" .name)) }}
{{- end }}
{{- range compact $reasons }}
{{- $bad = append $bad (dict "name" $container.name "why" .) }}
{{- end }}
{{- $kept = compact $reasons | empty | ternary (append $kept $container) $kept }}
{{- end }}
{{- dict "bad" $bad "kept" $kept | toJson }}
{{- end }}

{{- /* What `resources` of a container has in addition to amounts of the allowed resources. Takes a dict: resources, allowed. */ -}}
{{- define "platform.otherResources" -}}
{{- include "platform.arguments" (dict "template" "platform.otherResources" "given" . "names" (list "resources" "allowed")) -}}
{{- $allowed := .allowed }}
{{- $others := kindIs "map" .resources | ternary list (list (toJson .resources)) }}
{{- range $kind, $amounts := kindIs "map" .resources | ternary .resources dict }}
{{- if not (and (has $kind (list "limits" "requests")) (kindIs "map" $amounts)) }}
{{- $others = append $others (printf "%s: %s" $kind (toJson $amounts)) }}
{{- else }}
{{- range $resource, $_ := $amounts }}
{{- $others = has $resource $allowed | ternary $others (append $others $resource) }}
{{- end }}
{{- end }}
{{- end }}
{{- uniq $others | join ", " }}
{{- end }}
