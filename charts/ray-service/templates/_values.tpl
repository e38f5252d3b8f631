{{- /* Set the defaults that depend on other values. Takes the values, and changes them. */ -}}
{{- define "ray-service.derive" -}}
{{- range list .serve.applications .serve.customApplications }}
{{- range $name, $app := . }}
{{- if not (hasKey $app "routePrefix") }}
{{- $_ := set $app "routePrefix" (printf "/%s" $name) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
