{{- /* Hooks of Helm: an upgrade with new models downloads them before it changes anything. */ -}}

{{- /* Name of the Job, with a hash of its spec, its program and its egress: a Job is immutable, so another spec needs
       another name. */ -}}
{{- define "ray-service.downloadName" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.downloadName" "given" . "names" (list "root" "v")) -}}
{{- $what := printf "%s%s" (include "ray-service.downloadSpec" (merge (dict "program" "") .)) (toJson .v.networkPolicy.hub) -}}
{{- if include "ray-service.downloadsFrom" (dict "v" .v "from" "bucket") }}
{{- $what = printf "%s%s%s" $what (toJson .v.networkPolicy.bucket) (.root.Files.Get "files/bucket_download.py") }}
{{- end -}}
{{ include "ray-service.name" .root }}-weights-{{ sha256sum $what | trunc 7 }}
{{- end }}

{{- /* UID of the RayService if the hooks are needed, else empty. They are needed if the RayService exists, no Job
       has downloaded the models or is running, and the claim and the service account exist: hooks run before the
       chart creates them. `lookup` finds nothing without a cluster (`helm template`, Argo CD, which has waves). */ -}}
{{- define "ray-service.upgradeHookOwner" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.upgradeHookOwner" "given" . "names" (list "root" "v")) -}}
{{- $root := .root }}
{{- $v := .v }}
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

{{- /* Helm does not delete failed hooks: the owner reference deletes them with the RayService. */ -}}
{{- define "ray-service.hookMetadata" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.hookMetadata" "given" . "names" (list "root" "uid" "weight")) -}}
annotations:
  {{- with .root.Values.commonAnnotations }}
  {{- include "ray-service.textMap" . | nindent 2 }}
  {{- end }}
  helm.sh/hook: pre-upgrade
  helm.sh/hook-weight: {{ .weight | quote }}
  helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
ownerReferences:
  - apiVersion: ray.io/v1
    kind: RayService
    name: {{ include "ray-service.name" .root | quote }}
    uid: {{ .uid }}
{{- end }}
