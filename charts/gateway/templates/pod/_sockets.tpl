{{- /* Sockets between the frontends of one process. They are files, which only the user of HAProxy can open; every process in
       the network namespace could open abstract ones. */ -}}

{{- define "gateway.socketsFolder" -}}
/run/gateway
{{- end }}

{{- /* Address of a socket. Takes its name. On a computer without pods it is in the folder of the configuration. */ -}}
{{- define "gateway.socket" -}}
"unix@${SOCKETS_FOLDER-.}/{{ . }}"
{{- end }}

{{- define "gateway.socketsVolume" -}}
- name: sockets
  emptyDir: {medium: Memory, sizeLimit: 1Mi}
{{- end }}

{{- define "gateway.socketsVolumeMount" -}}
- name: sockets
  mountPath: {{ include "gateway.socketsFolder" . }}
{{- end }}

{{- define "gateway.socketsEnv" -}}
- name: SOCKETS_FOLDER
  value: {{ include "gateway.socketsFolder" . }}
{{- end }}
