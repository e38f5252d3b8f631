{{- /* Defaults that follow from other values. Takes the values, and changes them. */ -}}
{{- define "tenant.derive" -}}
{{- $devices := 0 }}
{{- range .quota.gpus }}
{{- if not (hasKey . "baseline") }}
{{- $_ := set . "baseline" .planned }}
{{- end }}
{{- $devices = add $devices .baseline .upgradeSurge }}
{{- end }}
{{- range .quota.extendedResources }}
{{- $devices = add $devices . }}
{{- end }}
{{- if kindIs "string" .quota.objects.resourceClaims }}
{{- $_ := set .quota.objects "resourceClaims" $devices }}
{{- end }}
{{- end }}
