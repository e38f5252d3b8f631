{{- /* Generated from charts/lib/pod-template.tpl by `make generate`. Do not edit. */ -}}
{{- /* What the other settings of a pod do not cover: extraContainers, initContainers and podTemplate, a strategic patch. Without
       them a pod template is rendered as it is written. */ -}}

{{- /* Fields that a patch may have, below `spec` and in its containers, and those of a container of the values. A list of what
       is allowed, so that no patch takes a security setting away, also none of a later version of Kubernetes. */ -}}
{{- define "gateway.patchableFields" -}}
spec: [dnsConfig, dnsPolicy, hostAliases, preemptionPolicy, readinessGates, schedulerName, schedulingGates, setHostnameAsFQDN]
patch: [name, livenessProbe, readinessProbe, resources, startupProbe, terminationMessagePath, terminationMessagePolicy]
container: [args, command, env, envFrom, image, imagePullPolicy, livenessProbe, name, ports, readinessProbe, resources, restartPolicy, securityContext, startupProbe, terminationMessagePath, terminationMessagePolicy, volumeMounts, workingDir]
resources: [cpu, memory, ephemeral-storage]
securityContext: [readOnlyRootFilesystem, runAsGroup, runAsUser]
{{- end }}

{{- /* A pod template with the containers and the patch of its settings. Takes a dict: root, path (of the settings), pod (the
       settings), text (YAML of the template). */ -}}
{{- define "gateway.patchedPod" -}}
{{- include "gateway.arguments" (dict "template" "gateway.patchedPod" "given" . "names" (list "root" "path" "pod" "text")) -}}
{{- $pod := .pod }}
{{- if not (or $pod.extraContainers $pod.initContainers $pod.podTemplate) }}
{{- trim .text }}
{{- else }}
{{- $args := dict "v" (include "gateway.values" .root | fromJson | merge (dict "root" .root)) }}
{{- $at := compact (splitList "." .path) }}
{{- $template := fromYaml .text }}
{{- $patch := deepCopy (dig "spec" dict $pod.podTemplate) }}
{{- $spec := mergeOverwrite $template.spec (omit $patch "containers" "initContainers") }}
{{- /* Kubernetes wants names that are unique across both lists. */ -}}
{{- $taken := dict }}
{{- range concat (get $spec "containers" | default list) (get $spec "initContainers" | default list) }}
{{- $_ := set $taken .name true }}
{{- end }}
{{- range $kind, $key := dict "containers" "extraContainers" "initContainers" "initContainers" }}
{{- $all := dict }}
{{- $names := list }}
{{- range get $spec $kind | default list }}
{{- $_ := set $all .name . }}
{{- $names = append $names .name }}
{{- end }}
{{- $bad := list }}
{{- $kept := list }}
{{- range get $pod $key | default list }}
{{- if hasKey $taken .name }}
{{- $bad = append $bad (dict "name" .name "why" "the pod has a container of this name") }}
{{- else }}
{{- $kept = append $kept . }}
{{- end }}
{{- $_ := set $taken .name true }}
{{- $own := pick (get . "securityContext" | default dict) "runAsUser" "runAsGroup" "readOnlyRootFilesystem" }}
{{- $_ := set $all .name (set (deepCopy .) "securityContext" (mergeOverwrite (include "gateway.containerSecurity" $args.v.root | fromYaml) $own)) }}
{{- $names = append $names .name }}
{{- end }}
{{- include "gateway.refusePod" (dict "args" $args "id" "extra-container" "at" (append $at $key) "to" $kept "bad" $bad) }}
{{- range get $patch $kind | default list }}
{{- if not (hasKey $all .name) }}
{{- $unknown := list (dict "name" (printf "%s %s" $kind .name) "why" (printf "the pod has only %s" (join ", " $names))) }}
{{- include "gateway.refusePod" (dict "args" $args "id" "pod-template" "at" (append $at "podTemplate") "to" dict "bad" $unknown) }}
{{- end }}
{{- $_ := set $all .name (mergeOverwrite (get $all .name) .) }}
{{- end }}
{{- $containers := list }}
{{- range $names }}
{{- $containers = append $containers (include "gateway.writtenContainer" (dict "container" (get $all .)) | fromJson) }}
{{- end }}
{{- with $containers }}
{{- $_ := set $spec $kind . }}
{{- end }}
{{- end }}
{{- toYaml $template }}
{{- end }}
{{- end }}

{{- /* A container as an operator writes it back, as JSON: with resources, and quantities in the form of Kubernetes. Takes a dict:
       container. */ -}}
{{- define "gateway.writtenContainer" -}}
{{- include "gateway.arguments" (dict "template" "gateway.writtenContainer" "given" . "names" (list "container")) -}}
{{- $sizes := dict }}
{{- range $side, $amounts := get .container "resources" | default dict }}
{{- $written := deepCopy ($amounts | default dict) }}
{{- range $name, $amount := pick $written "cpu" "memory" "ephemeral-storage" }}
{{- $_ := set $written $name (include "gateway.quantity" (dict "quantities" (list $amount))) }}
{{- end }}
{{- $_ := set $sizes $side $written }}
{{- end }}
{{- set (deepCopy .container) "resources" $sizes | toJson }}
{{- end }}
