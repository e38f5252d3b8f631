{{- /* Rules across fields, which the schema cannot express. Their messages are in files/rules.json. Many repeat
       checks that KubeRay makes only after the API server accepted the object and Helm reported "deployed". Takes
       the values with `root`. */ -}}
{{- define "ray-service.validate" -}}
{{- include "ray-service.validateNames" . }}
{{- include "ray-service.validateServe" . }}
{{- include "ray-service.validateGroups" . }}
{{- include "ray-service.validateNodes" . }}
{{- include "ray-service.validateModels" . }}
{{- include "ray-service.validateModelImages" . }}
{{- include "ray-service.validateCapacity" . }}
{{- include "ray-service.validateZero" . }}
{{- include "ray-service.validateCluster" . }}
{{- include "ray-service.validateNetwork" . }}
{{- include "ray-service.validateTracing" . }}
{{- include "ray-service.validateImages" . }}
{{- include "ray-service.validateEnv" . }}
{{- include "ray-service.validateInterfaces" . }}
{{- include "ray-service.validatePods" . }}
{{- end }}

{{- define "ray-service.validateNames" -}}
{{- $v := . }}
{{- $name := include "ray-service.name" .root }}
{{- if gt (len $name) 47 }}
{{- include "ray-service.refuse" (dict "v" $v "id" "name-length" "words" (dict "name" $name "length" (len $name))) }}
{{- end }}
{{- if not (regexMatch "^[a-z]([-a-z0-9]*[a-z0-9])?$" $name) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "name-form" "words" (dict "name" $name)) }}
{{- end }}
{{- end }}
