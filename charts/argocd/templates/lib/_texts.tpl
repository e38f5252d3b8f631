{{- /* Generated from charts/lib/texts.tpl by `make generate`. Do not edit. */ -}}
{{- /* What people write as text and YAML may see as something else. Quoted where it has to be, because YAML takes `no` and
       `on` for truths and `1e3` for a number; numbers by way of JSON, because templates print 1234567 as 1.234567e+06. */ -}}

{{- /* A map of texts, in which YAML may have seen numbers, as texts. */ -}}
{{- define "argocd.texts" -}}
{{- $texts := dict }}
{{- range $key, $value := . }}
{{- $_ := set $texts $key (kindIs "string" $value | ternary $value ($value | toJson)) }}
{{- end }}
{{- $texts | toJson }}
{{- end }}

{{- /* The same as lines of YAML: labels, annotations, selectors. */ -}}
{{- define "argocd.textMap" -}}
{{- include "argocd.texts" . | fromJson | toYaml }}
{{- end }}

{{- /* Takes a list of tolerations. */ -}}
{{- define "argocd.tolerations" -}}
{{- $tolerations := list }}
{{- range . }}
{{- $toleration := include "argocd.texts" (omit . "tolerationSeconds") | fromJson }}
{{- if hasKey . "tolerationSeconds" }}
{{- $_ := set $toleration "tolerationSeconds" (int64 .tolerationSeconds) }}
{{- end }}
{{- $tolerations = append $tolerations $toleration }}
{{- end }}
{{- toYaml $tolerations }}
{{- end }}
