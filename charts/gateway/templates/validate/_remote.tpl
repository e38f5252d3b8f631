{{- define "gateway.validateRemote" -}}
{{- $v := . }}
{{- range $name, $remote := .remoteGateways }}
{{- if not $remote.secretName }}
{{- include "gateway.refuse" (dict "v" $v "id" "remote-secret" "words" (dict "remote" $name)) }}
{{- end }}
{{- if has $remote.host $v.exposure.hosts }}
{{- include "gateway.refuse" (dict "v" $v "id" "remote-itself" "words" (dict "remote" $name "host" $remote.host)) }}
{{- end }}
{{- if $remote.models }}
{{- $ca := $remote.certificateAuthority }}
{{- if not $remote.host }}
{{- include "gateway.refuse" (dict "v" $v "id" "remote-host" "words" (dict "remote" $name)) }}
{{- end }}
{{- if eq (empty $ca.configMapName) (empty $ca.secretName) }}
{{- include "gateway.refuse" (dict "v" $v "id" "remote-ca" "words" (dict "remote" $name)) }}
{{- end }}
{{- if and $v.networkPolicy.enabled (not $remote.cidrs) }}
{{- include "gateway.refuse" (dict "v" $v "id" "remote-egress" "words" (dict "remote" $name "host" $remote.host)) }}
{{- end }}
{{- end }}
{{- range $model, $_ := $remote.modelWeights }}
{{- if not (hasKey $remote.models $model) }}
{{- include "gateway.refuse" (dict "v" $v "id" "remote-weight-unknown" "words" (dict "remote" $name "model" $model)) }}
{{- end }}
{{- end }}
{{- range $model, $versions := $remote.models }}
{{- $known := (get $v.models $model | default dict).versions | default dict }}
{{- range $versions }}
{{- if not (hasKey $known .) }}
{{- include "gateway.refuse" (dict "v" $v "id" "remote-version-unknown" "words" (dict "remote" $name "model" $model "version" .)) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- range $id, $model := .models }}
{{- $remotes := list }}
{{- $local := false }}
{{- range $name, $version := $model.versions }}
{{- $local = or $local (not (empty $version.endpoints)) }}
{{- $remotes = concat $remotes (include "gateway.remotesOf" (dict "v" $v "model" $id "version" $name) | fromJsonArray) }}
{{- end }}
{{- if and $model.spillAbove (not $remotes) }}
{{- include "gateway.refuse" (dict "v" $v "id" "spill-without-remote" "words" (dict "model" $id)) }}
{{- end }}
{{- if and $model.spillAbove (not $local) }}
{{- include "gateway.refuse" (dict "v" $v "id" "spill-without-endpoint" "words" (dict "model" $id)) }}
{{- end }}
{{- end }}
{{- end }}
