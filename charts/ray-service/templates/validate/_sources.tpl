{{- define "ray-service.validateSource" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateSource" "given" . "names" (list "v" "path" "model")) -}}
{{- $v := .v }}
{{- $path := .path }}
{{- $source := .model.source }}
{{- range list $source (get .model "tokenizer") | compact }}
{{- if and (include "ray-service.isHubId" .) $v.weights.offline (not $v.weights.enabled) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "weights-off" "words" (dict "path" $path "source" .)) }}
{{- end }}
{{- end }}
{{- include "ray-service.validateRevision" (dict "v" $v "path" $path "field" "source" "pin" "revision" "source" $source "revision" .model.revision) }}
{{- with get .model "tokenizer" }}
{{- include "ray-service.validateRevision" (dict "v" $v "path" $path "field" "tokenizer" "pin" "tokenizerRevision" "source" . "revision" $.model.tokenizerRevision) }}
{{- end }}
{{- $image := trimPrefix "/model-images/" $source | splitList "/" | first }}
{{- if and (hasPrefix "/model-images/" $source) (not (hasKey $v.weights.images $image)) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "model-image-unknown" "words" (dict "path" $path "source" $source "image" $image)) }}
{{- end }}
{{- if and (contains "://" $source) (not .model.revision) $v.networkPolicy.enabled (not $v.networkPolicy.egress) }}
{{- include "ray-service.refuse" (dict "v" $v "id" "remote-source-egress" "words" (dict "path" $path "source" $source)) }}
{{- end }}
{{- end }}

{{- /* `pin` is the key of the revision. In a map of revisions by source, as hubModels is, it is the source. */ -}}
{{- define "ray-service.validateRevision" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateRevision" "given" . "names" (list "v" "path" "field" "pin" "source" "revision")) -}}
{{- $words := omit . "v" }}
{{- if and (contains "://" .source) (not (regexMatch "^(s3|gs|abfss|azure)://" .source)) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "source-scheme" "words" $words) }}
{{- end }}
{{- $bucket := eq (include "ray-service.isBucket" .source) "true" }}
{{- $digits := ternary 40 (ternary 64 0 $bucket) (not (contains "://" .source)) }}
{{- /* The Job is what reads hubModels. */ -}}
{{- $needed := and $bucket (eq .pin .source) }}
{{- if or (and $needed (not .revision)) (and .revision (ne (len .revision) $digits)) }}
{{- $fixed := dict .pin (ternary (repeat 64 "0") "" $needed) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "source-revision" "words" (set $words "fixed" $fixed)) }}
{{- end }}
{{- $egress := .v.networkPolicy }}
{{- if and $bucket .revision $egress.enabled (not $egress.bucket.cidrs) (not (include "ray-service.peer" $egress.bucket.peer)) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "bucket-egress" "words" $words) }}
{{- end }}
{{- if and $bucket .revision (not .v.weights.enabled) }}
{{- include "ray-service.refuse" (dict "v" .v "id" "bucket-volume" "words" $words) }}
{{- end }}
{{- if and $bucket .revision (not (hasPrefix "s3://" .source)) }}
{{- include "ray-service.validateStore" . }}
{{- end }}
{{- end }}

{{- /* The Job reads gs:// with HMAC keys and Azure with a SAS token, and one release has the keys of one store. */ -}}
{{- define "ray-service.validateStore" -}}
{{- include "ray-service.arguments" (dict "template" "ray-service.validateStore" "given" . "names" (list "v" "path" "field" "pin" "source" "revision")) -}}
{{- $words := set (omit . "v") "keys" (ternary "an HMAC key, through the S3-compatible API of Google Cloud Storage" "a SAS token" (hasPrefix "gs://" .source)) }}
{{- /* All models move to one store: S3, else that of the first source. */}}
{{- $other := "" }}
{{- range include "ray-service.downloads" .v | fromJsonArray }}
{{- $isS3 := hasPrefix "s3://" .source }}
{{- $isFirst := or (not $other) (eq $isS3 (hasPrefix "s3://" $other) | ternary (lt .source $other) $isS3) }}
{{- if and (eq .from "bucket") $isFirst }}
{{- $other = .source }}
{{- end }}
{{- end }}
{{- if and $other (ne (include "ray-service.store" $other) (include "ray-service.store" .source)) }}
{{- /* A copy beside the other model: its scheme, and for Azure its host. */}}
{{- $to := regexReplaceAll "^([a-z0-9]+://)[^@/]+(@[^/]+)?.*$" $other "${1}BUCKET${2}" }}
{{- $moved := regexReplaceAll "^[a-z0-9]+://([^@/]+)(@[^/]+)?" $.source (replace "BUCKET" "${1}" $to) }}
{{- $fixed := dict $.field $moved }}
{{- if eq $.pin $.source }}
{{- $fixed = printf "%s   # without %s" (dict $moved $.revision | toJson) $.source }}
{{- end }}
{{- include "ray-service.refuse" (dict "v" $.v "id" "bucket-stores" "words" (merge (dict "other" $other "fixed" $fixed) $words)) }}
{{- else if not .v.weights.download.bucket.credentialsSecret }}
{{- include "ray-service.refuse" (dict "v" .v "id" "bucket-keys" "words" $words) }}
{{- end }}
{{- end }}

{{- /* Image volumes are on by default from Kubernetes 1.35 (kube_features.go). Older API servers drop the volume. */ -}}
{{- define "ray-service.validateModelImages" -}}
{{- $version := .root.Capabilities.KubeVersion.Version }}
{{- if and .weights.images (semverCompare "<1.35.0-0" $version) }}
{{- $words := dict "images" (keys .weights.images | sortAlpha | join ", ") "version" $version }}
{{- include "ray-service.refuse" (dict "v" . "id" "model-image-kubernetes" "words" $words) }}
{{- end }}
{{- end }}
