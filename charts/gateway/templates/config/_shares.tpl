{{- /* The tables of shares: of a tenant's limits among pods, and of a model's requests among its versions. */ -}}

{{- /* Pods that are sure to run: each counts for itself, so limits are shared out over them, rounded up. */ -}}
{{- define "gateway.pods" -}}
{{ ternary .replicas .autoscaling.minReplicas (eq .autoscaling.kind "None") | int }}
{{- end }}

{{- /* Requests a minute and at once of one pod, and the seconds after which one more may pass. */ -}}
{{- define "gateway.mapLimits" -}}
{{- $pods := include "gateway.pods" .v | int }}
{{- range $name, $tenant := .v.tenants }}
{{- $rate := divf $tenant.requestsPerMinute $pods | ceil | int }}
{{ $name }} {{ $rate }} {{ divf $tenant.concurrency $pods | ceil | int }} {{ max 1 (divf 60 $rate | ceil | int) }}
{{- end }}
{{- end }}

{{- define "gateway.mapTenants" -}}
{{- range $name, $_ := .v.tenants }}
{{ $name }}
{{- end }}
{{- end }}

{{- define "gateway.mapBackends" -}}
{{- range $id, $model := .v.models }}
{{- range $name, $_ := $model.versions }}
{{ $id }}:{{ $name }} {{ include "gateway.backend" (list $id $name) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Weights as slots, as few as will do: 80 and 20 are four and one. */ -}}
{{- define "gateway.slot" -}}
{{- $all := list }}
{{- range .versions }}
{{- $all = append $all (int .weight) }}
{{- end }}
{{- $slot := 1 }}
{{- range $size := list 2 4 5 10 20 25 50 100 }}
{{- $fits := true }}
{{- range $all }}
{{- if mod . $size }}
{{- $fits = false }}
{{- end }}
{{- end }}
{{- if $fits }}
{{- $slot = $size }}
{{- end }}
{{- end }}
{{- $slot }}
{{- end }}

{{- define "gateway.mapSlots" -}}
{{- range $id, $model := .v.models }}
{{ $id }} {{ div 100 (include "gateway.slot" $model | int) }}
{{- end }}
{{- end }}

{{- define "gateway.mapDice" -}}
{{- range $id, $model := .v.models }}
{{- $size := include "gateway.slot" $model | int }}
{{- $at := 0 }}
{{- range $name, $version := $model.versions }}
{{- range until (div (int $version.weight) $size | int) }}
{{ $id }}:{{ $at }} {{ $name }}
{{- $at = add $at 1 }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
