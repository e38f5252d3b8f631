{{- /* Parts that head, workers and autoscaler share. */ -}}

{{- /* Takes (list root group), also for the head. */ -}}
{{- define "ray-service.podCommon" -}}
{{- $group := index . 1 -}}
terminationGracePeriodSeconds: {{ int $group.terminationGracePeriodSeconds }}
{{- with $group.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with include "ray-service.pullSecrets" (index . 0) }}
{{ . }}
{{- end }}
securityContext:
  {{- include "ray-service.podSecurity" (index . 0) | nindent 2 }}
  {{- with get $group "supplementalGroups" }}
  supplementalGroups:
    {{- range . }}
    - {{ int . }}
    {{- end }}
  {{- end }}
{{- end }}

{{- /* Limits and requests, which differ only if the values set a CPU request. Ray counts the limits, the scheduler
       the requests. Takes (list resources devices). */ -}}
{{- define "ray-service.resources" -}}
{{- $sizes := index . 0 }}
{{- $all := mergeOverwrite (dict "memory" (include "ray-service.quantity" $sizes.limits.memory)) (index . 1) }}
limits:
  {{- toYaml (merge (dict "cpu" (include "ray-service.quantity" $sizes.limits.cpu)) $all) | nindent 2 }}
requests:
  {{- toYaml (merge (dict "cpu" (include "ray-service.quantity" (dig "requests" "cpu" "" $sizes | default $sizes.limits.cpu))) $all) | nindent 2 }}
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
{{- end }}

{{- /* Takes (list root group). */ -}}
{{- define "ray-service.volumes" -}}
- name: shm
  emptyDir:
    medium: Memory
    sizeLimit: {{ include "ray-service.quantity" (index . 1).shmSize | quote }}
- name: tmp
  emptyDir:
    sizeLimit: {{ include "ray-service.quantity" (index . 1).tmpSize | quote }}
- name: cache
  emptyDir:
    sizeLimit: {{ include "ray-service.quantity" (index . 1).cacheSize | quote }}
- name: vllm-config
  configMap:
    name: {{ include "ray-service.name" (index . 0) }}-vllm
{{- end }}

{{- /* Bytes of Ray's object store: a quarter of /dev/shm, because NCCL and vLLM use it too, and at least 75 MiB,
       Ray's minimum. Ray's default is a third of the memory. Takes a group. */ -}}
{{- define "ray-service.objectStore" -}}
{{ printf "%.0f" (max 78643200 (divf (include "ray-service.number" .shmSize | float64) 4) | float64) | quote }}
{{- end }}
