{{- /* An upgrade that brings something new to fetch fetches it before anything else happens, by hooks of Helm. */ -}}

{{- /* The Job's name holds the hash of what it does (sources, revisions, image) and of its way to the hub: a Job cannot be
       edited, so another content is another Job. Takes (list root values). */ -}}
{{- define "ray-service.downloadName" -}}
{{- $what := printf "%s%s" (include "ray-service.downloadSpec" .) (toJson (index . 1).networkPolicy.hub) -}}
{{ include "ray-service.name" (index . 0) }}-weights-{{ sha256sum $what | trunc 7 }}
{{- end }}

{{- /* UID of the RayService, where the hooks are wanted: a service is there that would be told of weights too early, no Job
       has fetched them or is about to, and a pod could start, for hooks run before the chart's own claim and account are
       made. `lookup` finds nothing without a cluster (`helm template`, Argo CD, which has waves). Takes (list root values). */ -}}
{{- define "ray-service.downloadFirst" -}}
{{- $root := index . 0 }}
{{- $v := index . 1 }}
{{- if and $root.Release.IsUpgrade $v.weights.enabled $v.weights.download.enabled }}
{{- $in := $root.Release.Namespace }}
{{- $service := lookup "ray.io/v1" "RayService" $in (include "ray-service.name" $root) }}
{{- $claim := or $v.weights.claim.existingClaim (lookup "v1" "PersistentVolumeClaim" $in (include "ray-service.claimName" $root)) }}
{{- $account := or (not $v.serviceAccount.create) (lookup "v1" "ServiceAccount" $in (include "ray-service.serviceAccountName" $root)) }}
{{- $job := lookup "batch/v1" "Job" $in (include "ray-service.downloadName" .) }}
{{- range dig "status" "conditions" list $job }}
{{- if and (eq .type "Failed") (eq .status "True") }}
{{- $job = dict }}
{{- end }}
{{- end }}
{{- if and $service $claim $account (not $job) }}
{{- $service.metadata.uid }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Helm forgets hooks that failed: they go with the RayService. Takes (list root uid weight). */ -}}
{{- define "ray-service.hookMetadata" -}}
annotations:
  helm.sh/hook: pre-upgrade
  helm.sh/hook-weight: {{ index . 2 | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
ownerReferences:
  - apiVersion: ray.io/v1
    kind: RayService
    name: {{ include "ray-service.name" (index . 0) | quote }}
    uid: {{ index . 1 }}
{{- end }}
