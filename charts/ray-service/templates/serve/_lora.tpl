{{- /* LoRA adapters of a model: engine arguments, and the ingress that accepts their names. */ -}}
{{- define "ray-service.loraKwargs" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.loraKwargs" "given" . "names" (list "v" "model")) -}}
{{- $values := .v }}
{{- $lora := .model.lora }}
{{- $kwargs := dict }}
{{- if $lora.adapters }}
{{- $modules := list }}
{{- range $name, $adapter := $lora.adapters }}
{{- $modules = append $modules (dict "name" $name "path" (include "ray-service.adapterPath" (dict "v" $values "adapter" $adapter))) }}
{{- end }}
{{- /* With as many places in the memory of the node as adapters, a request never reads the volume. */}}
{{- $kwargs = dict
      "enable_lora" true
      "lora_modules" $modules
      "max_loras" $lora.slots
      "max_lora_rank" $lora.maxRank
      "max_cpu_loras" (max (int $lora.slots) (len $lora.adapters)) }}
{{- end }}
{{- $kwargs | toJson }}
{{- end }}

{{- define "ray-service.adapterPath" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.adapterPath" "given" . "names" (list "v" "adapter")) -}}
{{- if hasPrefix "/" .adapter.source -}}
{{ .adapter.source }}
{{- else -}}
{{ include "ray-service.downloadPath" (dict "v" .v "source" .adapter.source "revision" .adapter.revision) }}
{{- end }}
{{- end }}

{{- /* The ingress class of an application with adapters or aliases, or an empty map. Takes the application. */ -}}
{{- define "ray-service.ingressClass" -}}
{{- $bases := dict }}
{{- $aliases := dict }}
{{- range $id, $model := .models }}
{{- range $model.aliases }}
{{- $_ := set $aliases . $id }}
{{- end }}
{{- range $name, $_ := $model.lora.adapters }}
{{- $_ := set $bases $name $id }}
{{- end }}
{{- end }}
{{- $class := dict }}
{{- if or $bases $aliases }}
{{- $names := dict "adapters" $bases }}
{{- with $aliases }}
{{- $_ := set $names "aliases" . }}
{{- end }}
{{- $class = dict "ingress_cls" "rayhelm.runtime.adapter_ingress:AdapterIngress" "ingress_extra_kwargs" $names }}
{{- end }}
{{- $class | toJson }}
{{- end }}

{{- /* Adapters that the download Job checks, by name, as JSON. Takes the values. */ -}}
{{- define "ray-service.downloadedAdapters" -}}
{{- $v := . }}
{{- $found := dict }}
{{- range $v.serve.applications }}
{{- range $id, $model := .models }}
{{- range $name, $adapter := $model.lora.adapters }}
{{- if not (hasPrefix "/" $adapter.source) }}
{{- $base := $adapter.baseModel | default $model.source }}
{{- $_ := set $found $name (dict "path" (include "ray-service.adapterPath" (dict "v" $v "adapter" $adapter)) "baseModel" $base "rank" $model.lora.maxRank) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}
{{- $found | toJson }}
{{- end }}
