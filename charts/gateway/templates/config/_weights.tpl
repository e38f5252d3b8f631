{{- /* Versions of a model, and how its requests are divided among them. */ -}}

{{- define "gateway.mapBackends" -}}
{{- range $id, $model := .v.models }}
{{- range $name, $_ := $model.versions }}
{{ $id }}:{{ $name }} {{ include "gateway.backend" (dict "model" $id "version" $name) }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Percent per slot: the largest step that divides all weights. 80 and 20 become four slots and one. */ -}}
{{- define "gateway.slotPercent" -}}
{{- $weights := list }}
{{- range .versions }}
{{- $weights = append $weights (int .weight) }}
{{- end }}
{{- $percent := 1 }}
{{- range $step := list 2 4 5 10 20 25 50 100 }}
{{- $divides := true }}
{{- range $weights }}
{{- if mod . $step }}
{{- $divides = false }}
{{- end }}
{{- end }}
{{- if $divides }}
{{- $percent = $step }}
{{- end }}
{{- end }}
{{- $percent }}
{{- end }}

{{- define "gateway.mapSlotCounts" -}}
{{- range $id, $model := .v.models }}
{{ $id }} {{ div 100 (include "gateway.slotPercent" $model | int) }}
{{- end }}
{{- end }}

{{- define "gateway.mapSlotVersions" -}}
{{- range $id, $model := .v.models }}
{{- $percent := include "gateway.slotPercent" $model | int }}
{{- $slot := 0 }}
{{- range $name, $version := $model.versions }}
{{- range until (div (int $version.weight) $percent | int) }}
{{ $id }}:{{ $slot }} {{ $name }}
{{- $slot = add $slot 1 }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Versions with a weight of 0 that a tenant does not reach, because another version is pinned for it. */ -}}
{{- define "gateway.mapHiddenVersions" -}}
{{- range $tenant, $settings := .v.tenants }}
{{- range $model, $pinned := $settings.pinnedVersions }}
{{- range $name, $version := (get $.v.models $model).versions }}
{{- if and (ne $name $pinned) (eq (int $version.weight) 0) }}
{{ $tenant }}:{{ $model }}:{{ $name }} yes
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- define "gateway.hideVersions" }}
{{- $pins := dict }}
{{- range .v.tenants }}
{{- $pins = merge $pins .pinnedVersions }}
{{- end }}
{{- if $pins }}
  # A tenant with a pinned version reaches no other version whose weight is 0.
  acl is_hidden var(txn.tenant),concat(:,txn.model),concat(:,txn.requested_version),map_str(hidden-versions.map) -m found
  http-request return {{ get .answers "version-unknown" }} if has_version is_hidden
{{- end }}
{{- end }}
