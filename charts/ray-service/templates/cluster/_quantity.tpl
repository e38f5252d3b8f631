{{- /* A quantity in the form that Kubernetes writes: `1Gi` for `1024Mi`, `500m` for `0.5`. The operator writes the
       RayService back once, to add its finalizer, with quantities in that form. A field that changes in this way
       would belong to the operator, and the next server-side apply (Helm 4) would conflict. Digits below a
       thousandth are rounded up. Takes the quantity. */ -}}
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
