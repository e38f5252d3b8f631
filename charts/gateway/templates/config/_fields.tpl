{{- /* Checks of JSON bodies before a model server gets them. files/tasks.json has the fields of each operation, and fields.lua
       finds them. */ -}}

{{- /* Operations with a JSON body, by path. */ -}}
{{- define "gateway.jsonOperations" -}}
{{- $found := dict }}
{{- range $id, $model := .v.models }}
{{- range $path, $operation := include "gateway.operationsOf" (dict "data" $ "model" $model) | fromJson }}
{{- if eq $operation.body "json" }}
{{- $_ := set $found $path $operation }}
{{- end }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{- /* PATH REQUIRED TOKENS COPIES BATCHES REFUSED STATE, as fields.lua reads it. */ -}}
{{- define "gateway.mapFields" -}}
{{- $hasBounds := include "gateway.hasBound" (dict "v" .v "bound" "maxOutputTokens") | trim }}
{{- $refused := include "gateway.refusedFields" .v | fromJsonArray | join "," }}
{{- range $path, $operation := include "gateway.jsonOperations" . | fromJson }}
{{- $sets := list }}
{{- range $.v.validation.enabled | ternary $operation.required list }}
{{- $fields := list }}
{{- range $name, $kinds := . }}
{{- $letters := "" }}
{{- range $kinds }}
{{- $letters = printf "%s%s" $letters (trunc 1 .) }}
{{- end }}
{{- $fields = append $fields (printf "%s:%s" $name $letters) }}
{{- end }}
{{- $sets = append $sets (join "," $fields) }}
{{- end }}
{{- $output := and $hasBounds $operation.output | default dict }}
{{- $state := get $operation "state" | default list | join "," }}
{{ $path }} {{ join "|" $sets | default "-" }} {{ include "gateway.outputFields" $output }} {{ $refused | default "-" }} {{ $state | default "-" }}
{{- end }}
{{- end }}

{{- /* TOKENS COPIES BATCHES: the fields of the output of an operation. Takes `output` of files/tasks.json. */ -}}
{{- define "gateway.outputFields" -}}
{{- $tokens := get . "tokens" | default list | join "," -}}
{{- $batches := get . "batches" | default list | join "," -}}
{{ $tokens | default "-" }} {{ get . "copies" | default "-" }} {{ $batches | default "-" }}
{{- end }}

{{- /* Fields by which a client would choose what the operator chooses: where the KV cache is sent, which template runs, whose
       requests wait, how media are decoded, and the id that another tenant's request may have. */ -}}
{{- define "gateway.refusedFields" -}}
{{- $refused := list "chat_template" "ec_transfer_params" "kv_transfer_params" "media_io_kwargs" "mm_processor_kwargs" "priority" "request_id" "vllm_xargs" }}
{{- range $name, $_ := .validation.allowedFields }}
{{- $refused = without $refused $name }}
{{- end }}
{{- $refused | toJson }}
{{- end }}

{{- define "gateway.checkContentType" }}
{{- if .v.validation.enabled }}
  acl is_json_type req.fhdr(content-type) -m str -i application/json
  acl is_json_type req.fhdr(content-type) -m reg -i ^application/json[\ \t]*;
  http-request return {{ get .answers "content-type" }} if is_json !is_json_type
  http-request return {{ get .answers "content-type" }} if is_json { req.fhdr_cnt(content-type) gt 1 }
{{- end }}
{{- end }}

{{- define "gateway.checkFields" }}
{{- if .v.validation.enabled }}
{{- range list "field-missing" "field-invalid" }}
  http-request return {{ get $.answers . }} if !has_requested_model { var(txn.parsed) -m beg "{{ . }} " }
{{- end }}
{{- end }}
{{- end }}
