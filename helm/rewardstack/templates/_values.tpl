{{/* The description of a service (files/services.yaml) as JSON: list $ "rules". */}}
{{- define "rewardstack.description" -}}
{{ index ((index . 0).Files.Get "files/services.yaml" | fromYaml) (index . 1) | toJson }}
{{- end }}

{{/* Defaults of settings (files/settings.yaml) as JSON. */}}
{{- define "rewardstack.defaults" -}}
{{ .Files.Get "files/settings.yaml" | fromYaml | toJson }}
{{- end }}

{{/* Values over others as JSON: list lower upper. Maps are merged; a volume, node labels and affinity are replaced. */}}
{{- define "rewardstack.merged" -}}
{{- $upper := index . 1 | default dict }}
{{- $merged := mergeOverwrite (deepCopy (index . 0)) (deepCopy $upper) }}
{{- range $whole := list "affinity" "modelCache" "nodeSelector" }}
{{- if hasKey $upper $whole }}{{ $_ := set $merged $whole (index $upper $whole) }}{{ end }}
{{- end }}
{{- $merged | toJson }}
{{- end }}

{{/* What the pod helpers need of a service, without `root`, as JSON: list $ "rules". */}}
{{- define "rewardstack.pod-of" -}}
{{- $name := index . 1 }}
{{- $values := include "rewardstack.merged" (list (index . 0).Values.common (index (index . 0).Values $name)) | fromJson }}
{{- dict "name" $name "values" $values "description" (include "rewardstack.description" . | fromJson) | toJson }}
{{- end }}

{{/* A value as programs read it: without the exponent that numbers from a million on would have. */}}
{{- define "rewardstack.text" -}}
{{- if kindIs "float64" . }}{{ if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* A list of arguments as JSON, numbers as text. */}}
{{- define "rewardstack.arguments" -}}
{{- $texts := list }}
{{- range . }}{{ $texts = append $texts (include "rewardstack.text" .) }}{{ end }}
{{- $texts | toJson }}
{{- end }}

{{/* The bytes of a size of Kubernetes (512Mi) or Redis (512mb). */}}
{{- define "rewardstack.bytes" -}}
{{- $unit := regexFind "[A-Za-z]*$" (toString .) }}
{{- $bytes := dict "" 1 "b" 1 "k" 1e3 "kb" 1024 "ki" 1024 "m" 1e6 "mb" 1048576 "mi" 1048576 "g" 1e9 "gb" 1073741824 "gi" 1073741824 "t" 1e12 "ti" 1099511627776 }}
{{- mulf (trimSuffix $unit (toString .) | float64) (index $bytes (lower $unit) | default 1) | int64 }}
{{- end }}

{{/* The port of a service's pods: list $ "rules". */}}
{{- define "rewardstack.port" -}}
{{ (include "rewardstack.description" . | fromJson).port }}
{{- end }}

{{/* A port of the gateway, or of metrics: list $ "rules". */}}
{{- define "rewardstack.gateway-port" -}}
{{ index (include "rewardstack.defaults" (index . 0) | fromJson).ports (index . 1) }}
{{- end }}

{{/* An image in the registry of all: list $ "nginx:1.30". */}}
{{- define "rewardstack.image" -}}
{{- $registry := (index . 0).Values.registry | trimSuffix "/" }}{{ $image := index . 1 }}
{{- if or (not $registry) (hasPrefix (print $registry "/") $image) }}{{ $image }}
{{- else }}{{ $registry }}/{{ regexReplaceAll "^([^/]*[.:][^/]*|localhost)/" $image "" }}
{{- end }}
{{- end }}

{{/* The reward server's image, which has no default. */}}
{{- define "rewardstack.own-image" -}}
{{ include "rewardstack.image" (list . (required "rules.image: name the image of the reward server; make images REGISTRY=... builds and pushes it" .Values.rules.image)) }}
{{- end }}

{{/* Seconds that a stopping service may take to finish requests in flight. */}}
{{- define "rewardstack.drain-timeout" -}}
{{ .Values.settings.DRAIN_TIMEOUT | default (include "rewardstack.defaults" . | fromJson).rules.DRAIN_TIMEOUT | int }}
{{- end }}

{{/* The names of the keys that exist, as JSON. */}}
{{- define "rewardstack.keys" -}}
{{ ternary .Values.keys.names (keys .Values.keys.values | sortAlpha) (ne .Values.keys.existingSecret "") | toJson }}
{{- end }}

{{- define "rewardstack.keys-secret" -}}
{{ .Values.keys.existingSecret | default (include "rewardstack.service" (list . "keys")) }}
{{- end }}

{{/* The gateway's settings as JSON. */}}
{{- define "rewardstack.gateway-settings" -}}
{{ merge (deepCopy .Values.gateway.settings) (pick .Values.settings "MAX_BODY_BYTES" "ALLOWED_HOSTS") (include "rewardstack.defaults" . | fromJson).gateway | toJson }}
{{- end }}

{{/* The names of the gateway's ports that clients use, as JSON. */}}
{{- define "rewardstack.served" -}}
{{- $ports := omit (include "rewardstack.defaults" . | fromJson).ports "gateway-metrics" "worker-metrics" }}
{{- if not (or (include "rewardstack.judges" . | fromJson) .Values.rewardModel.model) }}{{ $ports = omit $ports "judge" }}{{ end }}
{{- if not .Values.embedding.enabled }}{{ $ports = omit $ports "embedding" }}{{ end }}
{{- keys $ports | sortAlpha | reverse | toJson }}
{{- end }}
