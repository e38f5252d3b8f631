{{- /* Generated from charts/lib/quantity.tpl by `make generate`. Do not edit. */ -}}
{{- /* Quantities of Kubernetes. */ -}}

{{- /* A quantity as a plain number. Takes the quantity. */ -}}
{{- define "argocd.number" -}}
{{- $text := kindIs "string" . | ternary . (toJson .) }}
{{- $number := regexFind "^[0-9.]+" $text | float64 }}
{{- $unit := regexFind "[A-Za-z]+$" $text | default "one" }}
{{- $units := dict "one" 1.0 "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 }}
{{- mulf $number (get $units $unit) | toJson }}
{{- end }}

{{- /* The sum of quantities in the form that Kubernetes writes: `1Gi` for `1024Mi`, `500m` for `0.5`. An operator that
       writes an object back writes that form; the field would then belong to the operator, and the next server-side apply
       (Helm 4) would conflict. Digits below a thousandth are rounded up. Takes a dict: quantities (a list). */ -}}
{{- define "argocd.quantity" -}}
{{- include "argocd.arguments" (dict "template" "argocd.quantity" "given" . "names" (list "quantities")) }}
{{- $sum := 0.0 }}
{{- $binary := true }}
{{- range .quantities }}
{{- $sum = addf $sum (include "argocd.number" . | float64) }}
{{- $binary = and $binary (hasSuffix "i" (toString .)) }}
{{- end }}
{{- $fraction := mulf (subf $sum (floor $sum)) 1000 }}
{{- $thousandths := round $fraction 6 | ceil | int64 }}
{{- $number := int64 (floor $sum) }}
{{- if mod $thousandths 1000 }}
{{- printf "%dm" (add (mul $number 1000) $thousandths) }}
{{- else }}
{{- $number = add $number (div $thousandths 1000) }}
{{- $binary = and $binary (ge $sum 1024.0) }}
{{- $step := ternary 1024 1000 $binary }}
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
