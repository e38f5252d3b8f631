{{- /* Names of network interfaces. NCCL and Gloo end with "no socket interface found" when the pod does not have it. */ -}}
{{- define "ray-service.validateInterfaces" -}}
{{- $v := . }}
{{- $addsInterfaces := false }}
{{- $named := list }}
{{- range $group, $pod := .workerGroups }}
{{- $addsInterfaces = or $addsInterfaces (hasKey $pod.podAnnotations "k8s.v1.cni.cncf.io/networks") }}
{{- $path := list "workerGroups" $group }}
{{- $named = append $named (dict "path" $path "key" "networkInterface" "name" $pod.networkInterface "fix" "{networkInterface: eth0}") }}
{{- $named = concat $named (include "ray-service.listInterfaces" (dict "path" $path "env" $pod.env) | fromJsonArray) }}
{{- end }}
{{- range $application, $app := .serve.applications }}
{{- range $model, $spec := $app.models }}
{{- $path := list "serve" "applications" $application "models" $model }}
{{- $named = concat $named (include "ray-service.listInterfaces" (dict "path" $path "env" $spec.env) | fromJsonArray) }}
{{- end }}
{{- end }}
{{- range $named }}
{{- if not (or $addsInterfaces (regexMatch "^(\\^.*|=?(lo|(eth|net)[0-9]*)(,(lo|(eth|net)[0-9]*))*)$" (toString .name))) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "host-interface" "words" .) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "ray-service.listInterfaces" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.listInterfaces" "given" . "names" (list "path" "env")) -}}
{{- $found := list }}
{{- $path := .path }}
{{- $env := .env }}
{{- range $variable := list "NCCL_SOCKET_IFNAME" "GLOO_SOCKET_IFNAME" }}
{{- with get $env $variable }}
{{- $found = append $found (dict "path" $path "key" (printf "env.%s" $variable) "name" . "fix" (printf "{env: {%s: eth0}}" $variable)) }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}
