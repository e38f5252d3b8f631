{{- define "platform.doctorSelector" -}}
rayhelm.dev/doctor: {{ include "platform.name" (dict "root" . "part" "doctor") }}
{{- end }}

{{- /* Command of the container as a JSON list. Takes the values. */ -}}
{{- define "platform.doctorCommand" -}}
{{- $doctor := .doctor }}
{{- $command := list "rayhelm" "doctor" }}
{{- if $doctor.fleet }}
{{- $command = append $command "/etc/rayhelm/fleet.yaml" }}
{{- end }}
{{- with $doctor.cluster }}
{{- $command = append $command (printf "--cluster=%s" .) }}
{{- end }}
{{- with $doctor.prometheusUrl }}
{{- $command = append $command (printf "--prometheus=%s" .) }}
{{- end }}
{{- toJson (concat $command (list "--serve=9111" (printf "--every=%d" (int $doctor.everyMinutes)))) }}
{{- end }}
