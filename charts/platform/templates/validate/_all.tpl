{{- /* Rules across fields, which the closed schema cannot hold; their words are in files/rules.json. Takes the values
       with `root`. */ -}}
{{- define "platform.validate" -}}
{{- include "platform.validateClasses" . }}
{{- include "platform.validateGpus" . }}
{{- include "platform.validatePolicies" . }}
{{- include "platform.validateMetrics" . }}
{{- include "platform.validateDashboards" . }}
{{- include "platform.validateProbe" . }}
{{- include "platform.validatePrometheusRules" . }}
{{- include "platform.validateDoctor" . }}
{{- include "platform.validateNetwork" . }}
{{- end }}
