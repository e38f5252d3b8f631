{{- /* Pod template of a worker group, before the patch of the values. */ -}}
{{- define "ray-service.workerTemplate" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.workerTemplate" "given" . "names" (list "root" "v" "name" "group")) -}}
{{- $root := .root }}
{{- $v := .v }}
{{- $name := .name }}
{{- $group := .group }}
metadata:
  labels:
    {{- include "ray-service.podLabels" (dict "root" $root "role" "worker" "group" $name) | nindent 4 }}
    {{- with $group.podLabels }}
    {{- include "ray-service.textMap" . | nindent 4 }}
    {{- end }}
  {{- if or (not $group.evictable) $group.podAnnotations (eq $v.scraping.kind "Annotations") }}
  annotations:
    {{- if eq $v.scraping.kind "Annotations" }}
    {{- include "ray-service.scrapeAnnotations" (dict "port" 8080) | nindent 4 }}
    {{- end }}
    {{- if not $group.evictable }}
    {{- include "ray-service.evictionAnnotations" . | trim | nindent 4 }}
    {{- end }}
    {{- with $group.podAnnotations }}
    {{- include "ray-service.textMap" . | nindent 4 }}
    {{- end }}
  {{- end }}
spec:
  serviceAccountName: {{ include "ray-service.serviceAccountName" $root | quote }}
  automountServiceAccountToken: false
  {{- include "ray-service.podCommon" (dict "root" $root "pod" $group) | nindent 2 }}
  {{- with $group.runtimeClassName }}
  runtimeClassName: {{ . | quote }}
  {{- end }}
  {{- with include "ray-service.nodes" $group | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with include "ray-service.spread" (dict "root" $root "role" "worker" "name" $name "pod" $group) | trim }}
  {{- . | nindent 2 }}
  {{- end }}
  {{- with $group.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with include "ray-service.workerInitContainers" . | trim }}
  initContainers:
    {{- . | nindent 4 }}
  {{- end }}
  containers:
    - {{ include "ray-service.workerContainer" . | nindent 6 | trim }}
  volumes:
    {{- include "ray-service.volumes" (dict "root" $root "v" $v "pod" $group) | nindent 4 }}
    {{- if and $v.weights.enabled $group.mountsWeights }}
    - name: weights
      persistentVolumeClaim:
        claimName: {{ include "ray-service.claimName" $root | quote }}
    {{- end }}
    {{- if $group.mountsWeights }}
    {{- with include "ray-service.modelImageVolumes" $v | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- end }}
    {{- with $group.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
{{- end }}
