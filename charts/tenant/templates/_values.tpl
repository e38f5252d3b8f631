{{- /* Defaults that follow from other values. Takes the values, and changes them. */ -}}
{{- define "tenant.derive" -}}
{{- range .quota.gpus }}
{{- if not (hasKey . "baseline") }}
{{- $_ := set . "baseline" .planned }}
{{- end }}
{{- end }}
{{- end }}
