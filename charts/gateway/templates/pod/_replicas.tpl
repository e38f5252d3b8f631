{{- /* Number of pods in the manifest; nothing if an autoscaler owns it. Helm removes a field that its previous manifest had,
       and Kubernetes then takes 1: a release with fixed replicas would lose all pods but one when it gets an autoscaler. So
       the live number stays in the manifest for as long as Helm would remove it. Without `lookup` (helm template, Argo CD)
       nothing is known of the live object. */ -}}
{{- define "gateway.replicas" -}}
{{- $v := include "gateway.values" . | fromJson }}
{{- if eq $v.autoscaling.kind "None" }}
{{- int $v.replicas }}
{{- else }}
{{- $live := lookup "apps/v1" "Deployment" .Release.Namespace (include "gateway.name" .) }}
{{- if and $live (include "gateway.helmRemovesReplicas" (dict "root" . "live" $live)) }}
{{- max 1 (int $live.spec.replicas) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* With server-side apply, Helm 4 removes what it owns, and an autoscaler that scales takes the field over. Otherwise Helm
       compares manifests: a fixed number was in the previous one if there is no autoscaler yet, or the live one with the
       annotation of deployment.yaml. Takes a dict: root, live. */ -}}
{{- define "gateway.helmRemovesReplicas" -}}
{{- include "gateway.arguments" (dict "template" "gateway.helmRemovesReplicas" "given" . "names" (list "root" "live")) -}}
{{- $metadata := .live.metadata }}
{{- $applied := "" }}
{{- range $metadata.managedFields }}
{{- if and (eq .manager "helm") (eq .operation "Apply") }}
{{- $applied = dig "f:spec" "f:replicas" "another" .fieldsV1 | kindIs "map" | ternary "owned" "another" }}
{{- end }}
{{- end }}
{{- if $applied }}
{{- eq $applied "owned" | ternary "true" "" }}
{{- else }}
{{- $name := include "gateway.name" .root }}
{{- $scaled := false }}
{{- range list $name (printf "keda-hpa-%s" $name) }}
{{- $scaled = or $scaled (lookup "autoscaling/v2" "HorizontalPodAutoscaler" $.root.Release.Namespace .) }}
{{- end }}
{{- or (not $scaled) (hasKey (get $metadata "annotations" | default dict) "rayhelm.dev/replicas") | ternary "true" "" }}
{{- end }}
{{- end }}
