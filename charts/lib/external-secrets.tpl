{{- /* ExternalSecrets: the External Secrets operator creates each Secret from a store. Takes a dict: root, namespace, secrets
       (by name). */ -}}
{{- define "lib.externalSecrets" -}}
{{- include "lib.arguments" (dict "template" "lib.externalSecrets" "given" . "names" (list "root" "namespace" "secrets")) -}}
{{- $root := .root }}
{{- $namespace := .namespace }}
{{- range $name, $secret := .secrets }}
---
apiVersion: external-secrets.io/v1
kind: ExternalSecret
metadata:
  {{- include "lib.metadata" (dict "root" $root "name" $name "namespace" $namespace) | nindent 2 }}
spec:
  refreshInterval: {{ $secret.refreshInterval }}
  secretStoreRef:
    kind: {{ $secret.store.kind }}
    name: {{ $secret.store.name }}
  target:
    name: {{ $name }}
    creationPolicy: Owner
    template:
      type: {{ $secret.type }}
  data:
    {{- range $key, $remote := $secret.keys }}
    - secretKey: {{ $key | quote }}
      remoteRef:
        key: {{ $remote.key | quote }}
        {{- with $remote.property }}
        property: {{ quote . }}
        {{- end }}
        {{- with $remote.version }}
        version: {{ quote . }}
        {{- end }}
    {{- end }}
{{- end }}
{{- end }}
