{{- /* A worker group. */ -}}
{{- define "ray-service.workerGroup" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.workerGroup" "given" . "names" (list "root" "v" "name" "group")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $name := .name }}
{{- $group := .group }}
{{- if not $v.autoscaler.enabled }}
replicas: {{ int $group.minReplicas }}
{{- end }}
minReplicas: {{ int $group.minReplicas }}
maxReplicas: {{ int (ternary $group.maxReplicas $group.minReplicas $v.autoscaler.enabled) }}
numOfHosts: {{ int $group.numOfHosts }}
# Without this field the operator adds it and owns the whole list, so the next server-side apply (Helm 4) would
# conflict.
scaleStrategy: {}
{{- if and $v.autoscaler.enabled (hasKey $group "idleTimeoutSeconds") }}
idleTimeoutSeconds: {{ int $group.idleTimeoutSeconds }}
{{- end }}
{{- if and $v.autoscaler.enabled (hasKey $group "priority") }}
priority: {{ int $group.priority }}
{{- end }}
rayStartParams:
  object-store-memory: {{ include "ray-service.objectStore" $group }}
# Explicit, because KubeRay counts GPUs of some resource names only, and the autoscaler needs the count before a pod
# exists.
resources:
  GPU: {{ int $group.gpu.count | quote }}
  {{ include "ray-service.groupResource" $name }}: "1"
  {{- range $resource, $count := $group.rayResources }}
  {{ $resource | quote }}: {{ int $count | quote }}
  {{- end }}
template:
  metadata:
    labels:
      {{- include "ray-service.podLabels" (dict "root" $root "role" "worker" "group" $name) | nindent 6 }}
      {{- with $group.podLabels }}
      {{- include "ray-service.textMap" . | nindent 6 }}
      {{- end }}
    {{- if or (not $group.evictable) $group.podAnnotations (eq $v.scraping.kind "Annotations") }}
    annotations:
      {{- if eq $v.scraping.kind "Annotations" }}
      {{- include "ray-service.scrapeAnnotations" (dict "port" 8080) | nindent 6 }}
      {{- end }}
      {{- if not $group.evictable }}
      {{- include "ray-service.evictionAnnotations" . | trim | nindent 6 }}
      {{- end }}
      {{- with $group.podAnnotations }}
      {{- include "ray-service.textMap" . | nindent 6 }}
      {{- end }}
    {{- end }}
  spec:
    serviceAccountName: {{ include "ray-service.serviceAccountName" $root | quote }}
    automountServiceAccountToken: false
    {{- include "ray-service.podCommon" (dict "root" $root "pod" $group) | nindent 4 }}
    {{- with $group.runtimeClassName }}
    runtimeClassName: {{ . | quote }}
    {{- end }}
    {{- with include "ray-service.nodes" $group | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "ray-service.spread" (dict "root" $root "role" "worker" "name" $name "pod" $group) | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with $group.affinity }}
    affinity:
      {{- toYaml . | nindent 6 }}
    {{- end }}
    {{- with include "ray-service.workerInitContainers" . | trim }}
    initContainers:
      {{- . | nindent 6 }}
    {{- end }}
    containers:
      - {{ include "ray-service.workerContainer" . | nindent 8 | trim }}
    volumes:
      {{- include "ray-service.volumes" (dict "root" $root "v" $v "pod" $group) | nindent 6 }}
      {{- if and $v.weights.enabled $group.mountsWeights }}
      - name: weights
        persistentVolumeClaim:
          claimName: {{ include "ray-service.claimName" $root | quote }}
      {{- end }}
      {{- if $group.mountsWeights }}
      {{- with include "ray-service.modelImageVolumes" $v | trim }}
      {{- . | nindent 6 }}
      {{- end }}
      {{- end }}
      {{- with $group.extraVolumes }}
      {{- toYaml . | nindent 6 }}
      {{- end }}
{{- end }}
