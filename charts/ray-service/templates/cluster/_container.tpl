{{- /* Parts that head, workers and autoscaler share. */ -}}

{{- /* Fields of the pod of a worker group or of the head. */ -}}
{{- define "ray-service.podCommon" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.podCommon" "given" . "names" (list "root" "pod")) -}}
{{- $group := .pod -}}
# A Service `vllm` in the namespace would set VLLM_PORT to a URL, and every engine would crash.
enableServiceLinks: false
terminationGracePeriodSeconds: {{ int $group.terminationGracePeriodSeconds }}
{{- with $group.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with include "ray-service.pullSecrets" .root }}
{{ . }}
{{- end }}
securityContext:
  {{- include "ray-service.securityContext" .root | nindent 2 }}
  {{- with get $group "supplementalGroups" }}
  supplementalGroups:
    {{- range . }}
    - {{ int . }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /* Limits and requests, which differ only if the values set a CPU request. Ray counts the limits, the scheduler
       the requests. */ -}}
{{- define "ray-service.resources" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.resources" "given" . "names" (list "resources" "devices")) -}}
{{- $sizes := .resources }}
{{- $all := mergeOverwrite (dict "memory" (include "ray-service.quantity" (dict "quantities" (list $sizes.limits.memory)))) .devices }}
limits:
  {{- toYaml (merge (dict "cpu" (include "ray-service.quantity" (dict "quantities" (list $sizes.limits.cpu)))) $all) | nindent 2 }}
requests:
  {{- toYaml (merge (dict "cpu" (include "ray-service.quantity" (dict "quantities" (list (dig "requests" "cpu" "" $sizes | default $sizes.limits.cpu))))) $all) | nindent 2 }}
{{- end }}

{{- define "ray-service.mounts" -}}
- name: shm
  mountPath: /dev/shm
- name: tmp
  mountPath: /tmp
- name: cache
  mountPath: /cache
- name: vllm-config
  mountPath: /etc/vllm
  readOnly: true
{{- include "ray-service.serveTlsMount" .v }}
{{- end }}

{{- define "ray-service.volumes" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.volumes" "given" . "names" (list "root" "v" "pod")) -}}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ include "ray-service.quantity" (dict "quantities" (list .pod.shmSize)) | quote }}
- name: tmp
  emptyDir:
    sizeLimit: {{ include "ray-service.quantity" (dict "quantities" (list .pod.tmpSize)) | quote }}
- name: cache
  emptyDir:
    sizeLimit: {{ include "ray-service.quantity" (dict "quantities" (list .pod.cacheSize)) | quote }}
- name: vllm-config
  configMap:
    name: {{ include "ray-service.name" .root }}-vllm
{{- include "ray-service.serveTlsVolume" .v }}
{{- end }}

{{- /* Bytes of Ray's object store: a quarter of /dev/shm, because NCCL and vLLM use it too, and at least 75 MiB,
       Ray's minimum. Ray's default is a third of the memory. Takes a group. */ -}}
{{- define "ray-service.objectStore" -}}
{{ printf "%.0f" (max 78643200 (divf (include "ray-service.number" .shmSize | float64) 4) | float64) | quote }}
{{- end }}
