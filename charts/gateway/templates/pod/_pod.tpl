{{- /* SIGTERM would abort every stream, and not every image sets STOPSIGNAL SIGUSR1. So the hook sends SIGUSR1 and waits until
       the process has stopped. */ -}}
{{- define "gateway.preStop" -}}
sleep {{ int .drain.delaySeconds }}; kill -USR1 1; while kill -0 1 2>/dev/null; do sleep 1; done
{{- end }}

{{- define "gateway.graceSeconds" -}}
{{ add .drain.delaySeconds .drain.seconds 15 }}
{{- end }}

{{- /* One folder with the configuration and the tenants' keys. A missing Secret does not stop the pod; its tenant gets
       401. */ -}}
{{- define "gateway.volume" -}}
{{- include "gateway.arguments" (dict "template" "gateway.volume" "given" . "names" (list "root" "v")) -}}
projected:
  defaultMode: 0440
  sources:
    - configMap:
        name: {{ include "gateway.name" .root }}
    {{- range $name, $tenant := .v.tenants }}
    {{- if $tenant.keys.secretName }}
    - secret:
        name: {{ $tenant.keys.secretName }}
        optional: true
        items:
          - key: {{ $tenant.keys.secretKey | quote }}
            path: keys/{{ $name }}/keys
    {{- end }}
    {{- end }}
    {{- with include "gateway.secretSources" .v | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "gateway.saltSource" .v | trim }}
    {{- . | nindent 4 }}
    {{- end }}
    {{- with include "gateway.oidcSource" .v | trim }}
    {{- . | nindent 4 }}
    {{- end }}
{{- end }}

{{- define "gateway.spread" -}}
{{- include "gateway.arguments" (dict "template" "gateway.spread" "given" . "names" (list "root" "v")) -}}
{{- $required := ternary "DoNotSchedule" "ScheduleAnyway" (eq .v.nodeSpread "Required") }}
{{- range $key, $unsatisfiable := dict "kubernetes.io/hostname" $required "topology.kubernetes.io/zone" "ScheduleAnyway" }}
- topologyKey: {{ $key }}
  maxSkew: 1
  whenUnsatisfiable: {{ $unsatisfiable }}
  labelSelector:
    matchLabels:
      {{- include "gateway.selector" $.root | nindent 6 }}
  # Pods of the previous revision do not count.
  matchLabelKeys: [pod-template-hash]
  # Without this, a drained node counts as one without pods, and a required spread leaves the next pod Pending.
  nodeTaintsPolicy: Honor
{{- end }}
{{- end }}

{{- define "gateway.scheduling" -}}
{{- with .nodeSelector }}
nodeSelector:
  {{- include "gateway.textMap" . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations:
  {{- include "gateway.tolerations" . | nindent 2 }}
{{- end }}
{{- with .affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
