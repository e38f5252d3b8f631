{{- /* Settings of pods in Kubernetes' shape: podLabels, podAnnotations, affinity, topologySpreadConstraints, extraEnv,
       extraEnvFrom, extraVolumes and extraVolumeMounts. Without them these templates render nothing, so that a default
       changes no pod: any change of a Ray pod template makes KubeRay build a second cluster. */ -}}

{{- /* Takes a dict: pod, selector (YAML of matchLabels). Entries of a list. */ -}}
{{- define "lib.spreadConstraints" -}}
{{- include "lib.arguments" (dict "template" "lib.spreadConstraints" "given" . "names" (list "pod" "selector")) }}
{{- $own := dict "matchLabels" (.selector | fromYaml) }}
{{- range .pod.topologySpreadConstraints }}
{{ list (hasKey . "labelSelector" | ternary . (set (deepCopy .) "labelSelector" $own)) | toYaml }}
{{- end }}
{{- end }}

{{- /* Entries of `env`. Takes the settings of a pod. */ -}}
{{- define "lib.extraEnv" -}}
{{- range .extraEnv }}
{{- $env := deepCopy . }}
{{- if hasKey . "value" }}
{{- $_ := set $env "value" (kindIs "string" .value | ternary .value (.value | toJson)) }}
{{- end }}
{{ list $env | toYaml }}
{{- end }}
{{- end }}

{{- /* "true" for a variable that gives a container devices which it did not request. Others only choose among those that it
       has: CUDA_, HIP_ and ROCR_VISIBLE_DEVICES. Takes a dict: env (one variable). */ -}}
{{- define "lib.givesDevices" -}}
{{- include "lib.arguments" (dict "template" "lib.givesDevices" "given" . "names" (list "env")) -}}
{{- $isKnown := regexMatch "^(AWS_NEURON|[A-Z]+)_VISIBLE_DEVICES$" .env.name }}
{{- $onlyChooses := regexMatch "^(CUDA|HIP|ROCR)_" .env.name }}
{{- if and $isKnown (not $onlyChooses) (not (has (get .env "value" | toString) (list "none" "void"))) }}true{{ end }}
{{- end }}
