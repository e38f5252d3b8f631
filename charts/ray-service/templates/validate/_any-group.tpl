{{- /* Deployments that name no worker group: Ray places them on any of them. */ -}}

{{- /* Groups of a deployment as a JSON array: those that it names, else the only one with GPUs. Empty if there are several.
       Takes a dict: v, groups. */ -}}
{{- define "ray-service.groupsOf" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.groupsOf" "given" . "names" (list "v" "groups")) -}}
{{- $withGpus := list }}
{{- range $name, $group := .v.workerGroups }}
{{- if $group.gpu.count }}
{{- $withGpus = append $withGpus $name }}
{{- end }}
{{- end }}
{{- .groups | default (eq (len $withGpus) 1 | ternary $withGpus list) | toJson }}
{{- end }}

{{- /* Add a deployment that may run on any of several groups. Takes a dict: needed, gpus (of a replica), bounds. */ -}}
{{- define "ray-service.addAnywhere" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.addAnywhere" "given" . "names" (list "needed" "gpus" "bounds")) -}}
{{- $anywhere := .needed.anywhere }}
{{- /* Ray does not split a fraction over two GPUs: two replicas of 0.6 need two. */}}
{{- $own := ge .gpus 1.0 | ternary .gpus (gt .gpus 0.5 | ternary 1.0 0.0) }}
{{- range $key, $replicas := dict "fewest" .bounds.minReplicas "most" .bounds.maxReplicas }}
{{- $_ := set $anywhere $key (addf (get $anywhere $key) (mulf $replicas $.gpus)) }}
{{- $_ := set $anywhere (print $key "Own") (addf (get $anywhere (print $key "Own") | default 0.0) (mulf $replicas $own)) }}
{{- end }}
{{- end }}

{{- /* Compare what all deployments need with the sum of the groups. Takes a dict: v, needed. */ -}}
{{- define "ray-service.validateAnyGroup" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateAnyGroup" "given" . "names" (list "v" "needed")) -}}
{{- $v := .v }}
{{- $needed := .needed }}
{{- $have := 0.0 }}
{{- $largest := "" }}
{{- range $name, $group := $v.workerGroups }}
{{- $have = addf $have (mulf (include "ray-service.maxPods" (dict "v" $v "group" $group) | float64) $group.gpu.count) }}
{{- if or (not $largest) (gt $group.gpu.count (get $v.workerGroups $largest).gpu.count) }}
{{- $largest = $name }}
{{- end }}
{{- end }}
{{- $group := get $v.workerGroups $largest }}
{{- $field := ternary "maxReplicas" "minReplicas" (get $v.autoscaler "declared") }}
{{- $needs := dict }}
{{- range $key, $bound := dict "fewest" "minReplicas" "most" "maxReplicas" }}
{{- $need := get $needed.anywhere $key }}
{{- range $named := get $needed $key }}
{{- $need = addf $need $named }}
{{- end }}
{{- $_ := set $needs $bound (maxf $need (get $needed.anywhere (print $key "Own") | default 0.0)) }}
{{- end }}
{{- $most := maxf $needs.minReplicas $needs.maxReplicas }}
{{- $replicas := addf (get $group $field) (divf (subf $most $have) (max 1 (mul $group.numOfHosts $group.gpu.count)) | ceil) }}
{{- range $bound, $need := $needs }}
{{- if and $needed.anywhere.most (gt $need (addf $have 1e-9)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "capacity-any-group" "words" (dict "have" $have "need" $need "bound" $bound "group" $largest "field" $field "replicas" $replicas)) }}
{{- end }}
{{- end }}
{{- end }}
