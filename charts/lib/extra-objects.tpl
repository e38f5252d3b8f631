{{- /* Objects of `extraObjects` as they are written, with the labels of the release and the common ones. Takes the root. */ -}}
{{- define "lib.extraObjects" -}}
{{- $root := . }}
{{- range (include "lib.values" . | fromJson).extraObjects }}
{{- $metadata := .metadata }}
{{- $labels := mergeOverwrite (include "lib.labels" $root | fromYaml) ($metadata.labels | default dict) ($root.Values.commonLabels | default dict) }}
{{- $_ := set $metadata "labels" (include "lib.texts" $labels | fromJson) }}
{{- with include "lib.annotations" (dict "root" $root "own" $metadata.annotations) | fromJson }}
{{- $_ := set $metadata "annotations" (include "lib.texts" . | fromJson) }}
{{- end }}
---
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Reasons why a chart does not create an object, by API group and by kind: what it gives reaches beyond the release. */ -}}
{{- define "lib.refusedObjects" -}}
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

{{- /* The same for the charts whose objects are all in one namespace: of the whole cluster, or applied by an operator with
       more rights than the author of the values. */ -}}
{{- define "lib.reachingGroups" -}}
- [kustomize.toolkit.fluxcd.io, helm.toolkit.fluxcd.io, helm.cattle.io, helm.crossplane.io, kubernetes.crossplane.io]
- [apiextensions.crossplane.io, constraints.gatekeeper.sh, flowcontrol.apiserver.k8s.io, karpenter.sh, management.cattle.io, node.k8s.io,
   policy.networking.k8s.io, project.openshift.io, storage.k8s.io, templates.gatekeeper.sh, user.openshift.io]
{{- end }}

{{- /* Why the chart does not create an object; empty if it does. Takes a dict: object, v (the values with `root`). */ -}}
{{- define "lib.refusesObject" -}}
{{- include "lib.arguments" (dict "template" "lib.refusesObject" "given" . "names" (list "object" "v")) -}}
{{- $refused := include "lib.refusedObjects" . | fromYaml }}
{{- $reaching := include "lib.reachingGroups" . | fromYamlArray }}
{{- /* Not each kind with this suffix: a SecretProviderClass is in a namespace. */}}
{{- $classes := "Device|Gateway|Ingress|Priority|Runtime|Storage|VolumeGroupSnapshot|VolumeSnapshot|WorkloadPriority|[A-Za-z0-9]*Node" }}
{{- $kind := .object.kind }}
{{- $group := contains "/" .object.apiVersion | ternary (.object.apiVersion | splitList "/" | first) "" }}
{{- $why := get $refused.groups $group | default (get $refused.kinds $kind) }}
{{- if hasSuffix "list" (lower $kind) -}}
holds other objects. Write each of them by itself
{{- else if or $why (has .v.root.Chart.Name (list "argocd" "platform")) -}}
{{ $why }}
{{- else if or (has $group (first $reaching)) (and (eq $group "argoproj.io") (hasPrefix "Application" $kind)) -}}
applies further objects with the rights of an operator. Create it apart
{{- else if or (has $group (last $reaching)) (regexMatch (printf "^(Cluster|Global)[A-Z]|Clusterwide|^(%s)Class$" $classes) $kind) -}}
applies to the whole cluster. Write it into `extraObjects` of chart `platform`
{{- else if not (has (.object.metadata.namespace | default .v.root.Release.Namespace) (include "lib.namespaces" .v | fromJsonArray)) -}}
would be in namespace {{ .object.metadata.namespace }}, and the release is in {{ include "lib.namespaces" .v | fromJsonArray | join ", " }}. Write it into `extraObjects` of a release there, or of chart `platform`
{{- end }}
{{- end }}

{{- /* Namespaces of the release as JSON: its own, and the one that chart `tenant` manages. Takes the values with `root`. */ -}}
{{- define "lib.namespaces" -}}
{{- $tenant := get . "namespace" | default dict }}
{{- $managed := get $tenant "name" | default (get $tenant "manage" | default false | ternary (get . "nameOverride" | default .root.Release.Name) "") }}
{{- list .root.Release.Namespace $managed | compact | toJson }}
{{- end }}

{{- /* Fails on extra objects that give rights, are Secrets, or hold other objects. The fix has none of them, because it is
       printed. Takes the values with `root`. */ -}}
{{- define "lib.validateExtraObjects" -}}
{{- $bad := list }}
{{- $others := list }}
{{- range .extraObjects }}
{{- $why := include "lib.refusesObject" (dict "object" . "v" $) | trim }}
{{- if $why }}
{{- $bad = append $bad (dict "name" (printf "%s %s" .kind .metadata.name) "why" $why) }}
{{- else }}
{{- $others = append $others . }}
{{- end }}
{{- end }}
{{- include "lib.refuseEntries" (dict "v" . "id" "extra-object" "bad" $bad "words" (dict "others" (toJson $others))) }}
{{- end }}
