{{- /* Generated from charts/lib/extra-objects.tpl by `make generate`. Do not edit. */ -}}
{{- /* Objects of `extraObjects` as they are written, with the labels of the release and the common ones. Takes the root. */ -}}
{{- define "tenant.extraObjects" -}}
{{- $root := . }}
{{- range (include "tenant.values" . | fromJson).extraObjects }}
{{- $metadata := .metadata }}
{{- $labels := mergeOverwrite (include "tenant.labels" $root | fromYaml) ($metadata.labels | default dict) ($root.Values.commonLabels | default dict) }}
{{- $_ := set $metadata "labels" (include "tenant.texts" $labels | fromJson) }}
{{- with include "tenant.annotations" (dict "root" $root "own" $metadata.annotations) | fromJson }}
{{- $_ := set $metadata "annotations" (include "tenant.texts" . | fromJson) }}
{{- end }}
---
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Reasons why a chart does not create an object, by API group and by kind: what it gives reaches beyond the release. */ -}}
{{- define "tenant.refusedObjects" -}}
groups:
  rbac.authorization.k8s.io: gives rights. Chart `tenant` has `access`
  authorization.openshift.io: gives rights. Chart `tenant` has `access`
  admissionregistration.k8s.io: decides which objects the whole cluster accepts
  apiextensions.k8s.io: changes the API of the whole cluster. Install it with its operator
  apiregistration.k8s.io: changes the API of the whole cluster. Install it with its operator
  certificates.k8s.io: issues certificates of the cluster
  scheduling.k8s.io: decides which pods preempt others. Chart `platform` has `priorityClasses`
  security.openshift.io: gives pods the rights of the node
kinds:
  Namespace: "has labels that set the level of Pod Security: chart `tenant` creates namespaces"
  Secret: would be readable in the values and in the release. Use an ExternalSecret, or create it apart
  PersistentVolume: can mount each path of a node. Use a PersistentVolumeClaim
  Node: belongs to the cluster
  AppProject: gives rights in Argo CD. Chart `argocd` has `project.extraKinds`
{{- end }}

{{- /* Why the chart does not create an object; empty if it does. Takes the object. */ -}}
{{- define "tenant.refusesObject" -}}
{{- $refused := include "tenant.refusedObjects" . | fromYaml }}
{{- $group := contains "/" .apiVersion | ternary (.apiVersion | splitList "/" | first) "" }}
{{- if hasSuffix "List" .kind -}}
holds other objects. Write each of them by itself
{{- else -}}
{{ get $refused.groups $group | default (get $refused.kinds .kind) }}
{{- end }}
{{- end }}

{{- /* Fails on extra objects that give rights, are Secrets, or hold other objects. The fix has none of them, because it is
       printed. Takes the values with `root`. */ -}}
{{- define "tenant.validateExtraObjects" -}}
{{- $bad := list }}
{{- $others := list }}
{{- range .extraObjects }}
{{- $why := include "tenant.refusesObject" . | trim }}
{{- if $why }}
{{- $bad = append $bad (dict "name" (printf "%s %s" .kind .metadata.name) "why" $why) }}
{{- else }}
{{- $others = append $others . }}
{{- end }}
{{- end }}
{{- include "tenant.refuseEntries" (dict "v" . "id" "extra-object" "bad" $bad "words" (dict "others" (toJson $others))) }}
{{- end }}
