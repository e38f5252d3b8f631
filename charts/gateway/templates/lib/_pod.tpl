{{- /* Generated from charts/lib/pod.tpl by `make generate`. Do not edit. */ -}}
{{- /* Settings of pods in Kubernetes' shape: podLabels, podAnnotations, affinity, topologySpreadConstraints, extraEnv,
       extraEnvFrom, extraVolumes and extraVolumeMounts. Without them these templates render nothing, so that a default
       changes no pod: any change of a Ray pod template makes KubeRay build a second cluster. */ -}}

{{- /* Takes a dict: pod, selector (YAML of matchLabels). Entries of a list. */ -}}
{{- define "gateway.spreadConstraints" -}}
{{- include "gateway.arguments" (dict "template" "gateway.spreadConstraints" "given" . "names" (list "pod" "selector")) }}
{{- $own := dict "matchLabels" (.selector | fromYaml) }}
{{- range .pod.topologySpreadConstraints }}
{{ list (hasKey . "labelSelector" | ternary . (set (deepCopy .) "labelSelector" $own)) | toYaml }}
{{- end }}
{{- end }}

{{- /* Entries of `env`. Takes the settings of a pod. */ -}}
{{- define "gateway.extraEnv" -}}
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
{{- define "gateway.givesDevices" -}}
{{- include "gateway.arguments" (dict "template" "gateway.givesDevices" "given" . "names" (list "env")) -}}
{{- $isKnown := regexMatch "^(AWS_NEURON|[A-Z]+)_VISIBLE_DEVICES$" .env.name }}
{{- $onlyChooses := regexMatch "^(CUDA|HIP|ROCR)_" .env.name }}
{{- if and $isKnown (not $onlyChooses) (not (has (get .env "value" | toString) (list "none" "void"))) }}true{{ end }}
{{- end }}
