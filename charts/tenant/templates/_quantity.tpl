{{- /* A Kubernetes quantity as a plain number. */ -}}
{{- define "tenant.number" -}}
{{- $text := toString . }}
{{- $number := regexFind "^[0-9.]+" $text | float64 }}
{{- $unit := regexFind "[A-Za-z]+$" $text | default "one" }}
{{- $units := dict "one" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 }}
{{- mulf $number (get $units $unit) | toJson }}
{{- end }}

{{- /* The sum of quantities, to the thousandth. Takes a list. */ -}}
{{- define "tenant.sum" -}}
{{- $thousandths := 0.0 }}
{{- $binary := true }}
{{- range . }}
{{- $thousandths = addf $thousandths (mulf (include "tenant.number" . | float64) 1000) }}
{{- $binary = and $binary (hasSuffix "i" (toString .)) }}
{{- end }}
{{- $thousandths := round $thousandths 0 | int64 }}
{{- if mod $thousandths 1000 }}
{{- printf "%dm" $thousandths }}
{{- else }}
{{- $number := div $thousandths 1000 }}
{{- $step := ternary 1024 1000 $binary }}
{{- $unit := "" }}
{{- range ternary (list "Ki" "Mi" "Gi" "Ti" "Pi") (list "k" "M" "G" "T" "P") $binary }}
{{- if and $number (eq 0 (mod $number $step)) }}
{{- $number = div $number $step }}
{{- $unit = . }}
{{- end }}
{{- end }}
{{- printf "%d%s" $number $unit }}
{{- end }}
{{- end }}
