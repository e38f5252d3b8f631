{{- /* Takes `networkPolicy`. */ -}}
{{- define "tenant.validateNetwork" -}}
{{- if not (or .dns.peer.namespace .dns.cidrs) }}
{{- include "tenant.refuse" (list "dns-egress" dict) }}
{{- end }}
{{- range $to, $destination := .destinations }}
{{- if include "tenant.nobody" $destination }}
{{- include "tenant.refuse" (list "destination-nobody" (dict "name" $to)) }}
{{- end }}
{{- end }}
{{- range $name, $opening := .openings }}
{{- $words := dict "name" $name }}
{{- if not $opening.podLabels }}
{{- include "tenant.refuse" (list "opening-everybody" $words) }}
{{- end }}
{{- if not (or $opening.callers $opening.destinations) }}
{{- include "tenant.refuse" (list "opening-nothing" $words) }}
{{- end }}
{{- range $caller, $peer := $opening.callers }}
{{- if not $peer.namespace }}
{{- include "tenant.refuse" (list "opening-nobody" (dict "name" $name "side" "callers" "who" $caller "fix" "namespace: ...")) }}
{{- end }}
{{- end }}
{{- range $to, $destination := $opening.destinations }}
{{- if include "tenant.nobody" $destination }}
{{- include "tenant.refuse" (list "opening-nobody" (dict "name" $name "side" "destinations" "who" $to "fix" "cidrs: [...]")) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* Whether a destination is nobody: pods without a namespace, and no addresses. */ -}}
{{- define "tenant.nobody" -}}
{{- if not (or .peer.namespace (and .cidrs (not .peer.podLabels))) }}true{{ end }}
{{- end }}
