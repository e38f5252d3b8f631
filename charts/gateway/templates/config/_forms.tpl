{{- /* Refused fields in forms of the task `transcribe`, read by forms.lua. Other tasks have no form whose fields are known. */ -}}

{{- /* Whether a model has forms, and a field is refused. */ -}}
{{- define "gateway.checksForms" -}}
{{- range .v.models }}
{{- if and (eq .task "transcribe") (include "gateway.refusedFields" $.v | fromJsonArray) }}true{{ end }}
{{- end }}
{{- end }}

{{- define "gateway.loadForms" }}
{{- if include "gateway.checksForms" . | trim }}
  lua-load-per-thread forms.lua {{ include "gateway.refusedFields" .v | fromJsonArray | join " " }}
{{- end }}
{{- end }}

{{- /* For a backend of such a model. Takes (dict data id). */ -}}
{{- define "gateway.checkForms" }}
{{- include "gateway.arguments" (dict "template" "gateway.checkForms" "given" . "names" (list "data" "id")) }}
{{- if and (eq (get .data.v.models .id).task "transcribe") (include "gateway.checksForms" .data | trim) }}
  filter lua.form
  http-request lua.check_form
{{- range list "http-request" "http-response" }}
  {{ . }} set-var(txn.field) var(txn.form),word(2,' ') if { var(txn.form) -m beg "field-refused " }
  {{ . }} return {{ get $.data.answers "field-refused" }} if { var(txn.form) -m beg "field-refused " }
  {{ . }} return {{ get $.data.answers "form-invalid" }} if { var(txn.form) -m str form-invalid }
{{- end }}
{{- end }}
{{- end }}
