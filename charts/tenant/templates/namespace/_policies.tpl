{{- /* Annotations of the namespace with the lists that admission policies compare. A namespace that another tool manages
       needs them too. Takes the values. */ -}}
{{- define "tenant.policyAnnotations" -}}
{{- $quota := .quota }}
rayhelm.dev/priority-classes: {{ concat $quota.allowedPriorityClasses (keys $quota.priorityClasses | sortAlpha) | uniq | join "," | quote }}
rayhelm.dev/extended-resources: {{ concat (keys $quota.gpus) (keys $quota.extendedResources) | uniq | sortAlpha | join "," | quote }}
rayhelm.dev/network-namespaces: {{ join "," .networkPolicy.allowed.namespaces | quote }}
rayhelm.dev/network-cidrs: {{ join "," .networkPolicy.allowed.cidrs | quote }}
{{- with .networkPolicy.podNetworks }}
rayhelm.dev/pod-networks: {{ join "," . | quote }}
{{- end }}
{{- with $quota.schedulerQueues }}
rayhelm.dev/scheduler-queues: {{ join "," . | quote }}
{{- end }}
{{- with .csiDrivers }}
rayhelm.dev/csi-drivers: {{ join "," . | quote }}
{{- end }}
{{- with .dashboardFolder }}
rayhelm.dev/dashboard-folder: {{ quote . }}
{{- end }}
{{- with .cloudIdentities }}
rayhelm.dev/cloud-identities: {{ join "," . | quote }}
{{- end }}
{{- end }}
