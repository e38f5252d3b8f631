{{- /* A quantity as Kubernetes itself writes it: `1024Mi` is `1Gi`, `0.5` is `500m`. The operator writes the RayService
       back once, to add its finalizer, and spells everything so. A field that it spells in another way is then its own,
       and the next server-side apply (Helm 4) meets a conflict. Finer than a thousandth is rounded up. Takes the quantity. */ -}}
{{- define "ray-service.quantity" -}}
{{- $value := include "ray-service.number" . | float64 }}
{{- $whole := floor $value }}
{{- if ne $value $whole }}
{{- printf "%dm" (mulf $value 1000 | ceil | int64) }}
{{- else }}
{{- $binary := and (hasSuffix "i" (toString .)) (ge $value 1024.0) }}
{{- $step := ternary 1024 1000 $binary }}
{{- $number := int64 $whole }}
{{- $unit := "" }}
{{- range ternary (list "Ki" "Mi" "Gi" "Ti" "Pi" "Ei") (list "k" "M" "G" "T" "P" "E") $binary }}
{{- if and $number (eq 0 (mod $number $step)) }}
{{- $number = div $number $step }}
{{- $unit = . }}
{{- end }}
{{- end }}
{{- printf "%d%s" $number $unit }}
{{- end }}
{{- end }}
