{{/* The name that everything of a release begins with. */}}
{{- define "rewardstack.name" -}}
{{- if not (regexMatch "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$" .Release.Name) }}
{{- fail (printf "the release is called %s: its Services need up to 40 small letters, digits and hyphens, a letter first" .Release.Name) }}
{{- end }}
{{- .Release.Name }}
{{- end }}

{{/* Of a service of the release: list $ "rules". */}}
{{- define "rewardstack.service" -}}
{{ include "rewardstack.name" (index . 0) }}-{{ index . 1 }}
{{- end }}

{{/* By which any pod finds a service: list $ "rules". */}}
{{- define "rewardstack.host" -}}
{{ include "rewardstack.service" . }}.{{ (index . 0).Release.Namespace }}.svc.{{ (index . 0).Values.clusterDomain }}
{{- end }}

{{/* What selects the pods of a service; never changed, for Kubernetes does not let it be: list $ "rules". */}}
{{- define "rewardstack.selector" -}}
app.kubernetes.io/name: rewardstack
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "rewardstack.labels" -}}
{{ include "rewardstack.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- end }}

{{- define "rewardstack.metadata" -}}
metadata:
  name: {{ include "rewardstack.service" . }}
  labels:
    {{- include "rewardstack.labels" . | nindent 4 }}
{{- end }}

{{/* A value as programs read it: whole numbers come as floats, and those from a million on would have an exponent. */}}
{{- define "rewardstack.text" -}}
{{- if kindIs "float64" . }}{{ if eq . (floor .) }}{{ int64 . }}{{ else }}{{ . }}{{ end }}{{ else }}{{ . }}{{ end }}
{{- end }}

{{/* The port of a service, at its pods and at the gateway: list $ "rules". */}}
{{- define "rewardstack.port" -}}
{{- $ports := ((index . 0).Files.Get "files/settings.yaml" | fromYaml).ports }}
{{- index $ports (index . 1) | default (index ((index . 0).Files.Get "files/services.yaml" | fromYaml) (ternary "cache" (index . 1) (eq (index . 1) "redis"))).port }}
{{- end }}

{{/* An image in the registry of all, which takes the place of the image's own: list $ "nginx:1.30". */}}
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

{{/* The names of the keys that there are, as JSON. */}}
{{- define "rewardstack.keys" -}}
{{ ternary .Values.keys.names (keys .Values.keys.values | sortAlpha) (ne .Values.keys.existingSecret "") | toJson }}
{{- end }}

{{- define "rewardstack.keys-secret" -}}
{{ .Values.keys.existingSecret | default (include "rewardstack.service" (list . "keys")) }}
{{- end }}

{{/* Judges that run here, by the name of their service, with all that holds for each, as JSON. */}}
{{- define "rewardstack.judges" -}}
{{- $found := dict }}
{{- range $name, $own := .Values.judges }}
{{- $judge := mergeOverwrite (deepCopy $.Values.judge) ($own | default dict) (dict "name" $name) }}
{{- /* One volume, and labels of one node: those of the other judges are not added to. */}}
{{- range $whole := list "modelCache" "nodeSelector" }}
{{- if hasKey ($own | default dict) $whole }}{{ $_ := set $judge $whole (index $own $whole) }}{{ end }}
{{- end }}
{{- $service := ternary "judge" (printf "judge-%s" $name) (eq $name "default") }}
{{- if $judge.enabled }}{{ $_ := set $found $service $judge }}{{ end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{/* Whether the default judge is among them; empty where it is not. */}}
{{- define "rewardstack.default-judge" -}}
{{- if hasKey (include "rewardstack.judges" . | fromJson) "judge" }}true{{ end }}
{{- end }}

{{/* The table of routes of the judges that have a name, as JSON; empty where there is none. */}}
{{- define "rewardstack.routes" -}}
{{- $table := dict }}
{{- range $service, $judge := omit (include "rewardstack.judges" . | fromJson) "judge" }}
{{- $own := dict "model" (include "rewardstack.model" $judge) }}
{{- range $field, $value := $judge.route }}
{{- if $value }}{{ $_ := set $own $field $value }}{{ end }}
{{- end }}
{{- if or (hasKey $.Values.settings "LLM_JUDGE_SERVER_URL") (not (include "rewardstack.default-judge" $)) }}
{{- /* They are not asked where the default judge is. */}}
{{- $_ := set $own "base_url" (printf "%s/judges/%s" (include "rewardstack.gateway" (list $ "judge")) $judge.name) }}
{{- if has "llm_judge_server_api_key" (include "rewardstack.keys" $ | fromJsonArray) }}
{{- $_ := set $own "api_key_env" "LLM_JUDGE_SERVER_API_KEY" }}
{{- end }}
{{- end }}
{{- $_ := set $table $judge.name $own }}
{{- end }}
{{- with $table }}{{ dict "judges" . | toPrettyJson }}{{ end }}
{{- end }}

{{/* The gateway's address for a service: list $ "rules". */}}
{{- define "rewardstack.gateway" -}}
http://{{ include "rewardstack.host" (list (index . 0) "gateway") }}:{{ include "rewardstack.port" . }}
{{- end }}

{{/* Host names by which clients may address servers without keys: list $ those-of-the-values. Names below the cluster's
own domain are known, but that of its namespace, and of an Ingress, could be anybody's. */}}
{{- define "rewardstack.hosts" -}}
{{- $ := index . 0 }}
{{- $names := list (index . 1) (printf ".%s" $.Values.clusterDomain) (printf "%s.%s" (include "rewardstack.service" (list $ "gateway")) $.Release.Namespace) }}
{{- range list $.Values.ingress $.Values.httpRoute }}
{{- if .enabled }}{{ $names = concat $names (values .hosts | sortAlpha) }}{{ end }}
{{- end }}
{{- compact $names | uniq | join "," | replace "*." "." }}
{{- end }}

{{/* Its settings, as JSON: the values' over the defaults; a body passes it and the reward server, so one word for its size
will do. */}}
{{- define "rewardstack.gateway-settings" -}}
{{ merge (deepCopy .Values.gateway.settings) (pick .Values.settings "MAX_BODY_BYTES" "ALLOWED_HOSTS") (.Files.Get "files/settings.yaml" | fromYaml).gateway | toJson }}
{{- end }}

{{/* The ports of the gateway that clients are served at, by their names, as JSON. */}}
{{- define "rewardstack.served" -}}
{{- $served := list "rules" "page" }}
{{- if include "rewardstack.judges" . | fromJson }}{{ $served = append $served "judge" }}{{ end }}
{{- if .Values.embedding.enabled }}{{ $served = append $served "embedding" }}{{ end }}
{{- $served | toJson }}
{{- end }}

{{/* The servers of models that run here, by the name of their service, each with its kind, as JSON. */}}
{{- define "rewardstack.models" -}}
{{- $found := dict }}
{{- range $service, $judge := include "rewardstack.judges" . | fromJson }}
{{- $_ := set $found $service (merge (dict "kind" "judge") $judge) }}
{{- end }}
{{- with .Values.embedding }}
{{- if .enabled }}{{ $_ := set $found "embedding" (merge (dict "kind" "embedding") .) }}{{ end }}
{{- end }}
{{- $found | toJson }}
{{- end }}
