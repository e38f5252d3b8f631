{{- /* Takes a dict: v, createNamespace, operator. */ -}}
{{- define "argocd.syncPolicy" -}}
{{- include "argocd.arguments" (dict "template" "argocd.syncPolicy" "given" . "names" (list "v" "createNamespace" "operator")) -}}
{{- $sync := .v.sync }}
{{- if $sync.automated }}
automated:
  prune: {{ $sync.prune }}
  selfHeal: {{ $sync.selfHeal }}
{{- end }}
retry:
  limit: {{ int $sync.retry.limit }}
  backoff:
    duration: {{ $sync.retry.delay }}
    factor: 2
    maxDuration: {{ $sync.retry.maxDelay }}
{{- if not .operator }}
# Labels of a namespace that Argo CD creates. Without a Pod Security level it would accept privileged pods.
managedNamespaceMetadata:
  labels:
    {{- range list "enforce" "warn" "audit" }}
    pod-security.kubernetes.io/{{ . }}: restricted
    pod-security.kubernetes.io/{{ . }}-version: latest
    {{- end }}
{{- end }}
syncOptions:
  # CRDs of KubeRay are larger than the annotation of a client-side apply.
  - ServerSideApply=true
  # Without it a sync resets the fields that `ignoreDifferences` names.
  - RespectIgnoreDifferences=true
  # Two Applications with one object would revert each other.
  - FailOnSharedResource=true
  - PruneLast=true
  {{- if .operator }}
  # These charts bring CRDs and objects of them.
  - SkipDryRunOnMissingResource=true
  {{- end }}
  {{- if .createNamespace }}
  - CreateNamespace=true
  {{- end }}
{{- end }}

{{- define "argocd.ignoreDifferences" -}}
{{- range $name, $field := .ignoreDifferences }}
# {{ $name }}: {{ $field.reason }}
- group: {{ $field.group | quote }}
  kind: {{ $field.kind | quote }}
  {{- with $field.jsonPointers }}
  jsonPointers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $field.jqPathExpressions }}
  jqPathExpressions:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with $field.managedFieldsManagers }}
  managedFieldsManagers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end }}
{{- end }}

{{- /* Annotations of every Application. */ -}}
{{- define "argocd.compareOptions" -}}
{{- if .sync.serverSideDiff }}
argocd.argoproj.io/compare-options: ServerSideDiff=true
{{- end }}
{{- end }}

{{- /* Finalizers of the Applications of releases. */ -}}
{{- define "argocd.finalizers" -}}
# Without it the objects of a removed model stay. In the background: with Redis, KubeRay needs a Secret until the end.
- resources-finalizer.argocd.argoproj.io/background
{{- end }}
