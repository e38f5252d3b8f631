{{- /* The LLMConfig of the replicas that compute prompts: the one of the model, with their own scaling and the router. */ -}}
{{- define "ray-service.prefillConfig" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.prefillConfig" "given" . "names" (list "v" "id" "model" "root")) -}}
{{- $prefill := get .model "prefill" }}
{{- $scaling := dict "autoscaling" $prefill.autoscaling "router" (get .model "router") }}
{{- $most := dict "maxOngoingRequests" (get $prefill "maxOngoingRequests" | default (mulf 1.5 $prefill.autoscaling.targetOngoingRequests | ceil)) }}
{{- $alone := merge $scaling $most (omit .model "prefill" "autoscaling" "router" "maxOngoingRequests") }}
{{- $config := include "ray-service.llmConfig" (dict "v" .v "id" .id "model" $alone "root" .root) | fromJson }}
{{- $_ := set $config.engine_kwargs "kv_transfer_config" (include "ray-service.kvTransfer" (dict "prefill" $prefill "role" "kv_producer") | fromJson) }}
{{- $config | toJson }}
{{- end }}

{{- define "ray-service.kvTransfer" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.kvTransfer" "given" . "names" (list "prefill" "role")) -}}
{{- $transfer := dict "kv_connector" .prefill.connector "kv_role" .role }}
{{- with .prefill.connectorOptions }}
{{- $_ := set $transfer "kv_connector_extra_config" . }}
{{- end }}
{{- $transfer | toJson }}
{{- end }}
