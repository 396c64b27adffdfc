{{/* The gateway's ports by name, as JSON: those of clients and the one of metrics. */}}
{{- define "rewardstack.gateway-ports" -}}
{{- $ports := (include "rewardstack.defaults" . | fromJson).ports }}
{{- merge (dict "metrics" (index $ports "gateway-metrics")) (omit $ports "gateway-metrics" "worker-metrics") | toJson }}
{{- end }}

{{/* The ports of them that are open, as JSON. */}}
{{- define "rewardstack.gateway-open" -}}
{{- $open := include "rewardstack.served" . | fromJsonArray }}
{{- if .Values.monitoring.enabled }}{{ $open = append $open "metrics" }}{{ end }}
{{- $open | toJson }}
{{- end }}

{{/* nginx's `server` of a service: list $ "rules". */}}
{{- define "rewardstack.upstream" -}}
{{ include "rewardstack.host" . }}:{{ (include "rewardstack.description" (list (index . 0) (regexFind "^(reward-model|[a-z]+)" (index . 1))) | fromJson).port }} resolve
{{- end }}

{{/* Whether a service asks for a key: list $ key. */}}
{{- define "rewardstack.auth-request-uri" -}}
{{ ternary "/key" "off" (has (index . 1) (include "rewardstack.keys" (index . 0) | fromJsonArray)) }}
{{- end }}

{{/* Variables of the models below a path of their own, as JSON: paths and upstreams. */}}
{{- define "rewardstack.model-paths" -}}
{{- $settings := include "rewardstack.gateway-settings" . | fromJson }}
{{- $template := .Files.Get (printf "files/gateway/judge-%s.conf.template" $settings.JUDGE_BALANCING) | replace "${JUDGE_MAX_CONNS}" (include "rewardstack.text" $settings.JUDGE_MAX_CONNS) }}
{{- $paths := list }}
{{- $upstreams := list }}
{{- range $service, $model := omit (include "rewardstack.models" . | fromJson) "judge" "embedding" }}
{{- $path := "/reward_models/reward_model" }}
{{- if eq $model.kind "judge" }}{{ $path = printf "/judges/%s" $model.name }}{{ end }}
{{- $paths = append $paths (printf "%s %s;" $path $service) }}
{{- $upstreams = append $upstreams ($template | replace "${JUDGE_UPSTREAM}" $service | replace "${JUDGE_SERVER}" (include "rewardstack.upstream" (list $ $service))) }}
{{- end }}
{{- dict "MODEL_PATHS" (join " " $paths) "MODEL_UPSTREAMS" (join "\n" $upstreams) | toJson }}
{{- end }}

{{/* The variables that fill in the templates of nginx's configuration, as JSON. */}}
{{- define "rewardstack.gateway-variables" -}}
{{- $settings := include "rewardstack.gateway-settings" . | fromJson }}
{{- $data := dict
  "NGINX_ENVSUBST_OUTPUT_DIR" "/tmp/gateway"
  "NGINX_USER" ""
  "SERVICES" (printf "include resolver.conf; include %s.conf;" (include "rewardstack.gateway-open" . | fromJsonArray | join ".conf; include "))
  "RULES_SERVER" (include "rewardstack.upstream" (list . "rules"))
  "RULES_AUTH_REQUEST_URI" (include "rewardstack.auth-request-uri" (list . "reward_server_api_keys"))
  "JUDGE_AUTH_REQUEST_URI" (include "rewardstack.auth-request-uri" (list . "llm_judge_server_api_key"))
  "EMBEDDING_AUTH_REQUEST_URI" (include "rewardstack.auth-request-uri" (list . "embedding_server_api_key"))
  "JUDGE_UPSTREAM" "judge"
  "JUDGE_SERVER" (include "rewardstack.upstream" (list . "judge"))
  "EMBEDDING_SERVER" (include "rewardstack.upstream" (list . "embedding"))
  "DNS_RESOLVER" .Values.gateway.resolver
  "DNS_IPV6" (ternary "on" "off" .Values.ipv6)
  "TRIES" "3" }}
{{- range $name, $port := include "rewardstack.gateway-ports" . | fromJson }}
{{- $_ := set $data (printf "LISTEN_%s" (upper $name)) (ternary (printf "[::]:%v ipv6only=off" $port) (toString $port) $.Values.ipv6) }}
{{- end }}
{{- range $name, $value := $settings }}{{ $_ := set $data $name (include "rewardstack.text" $value) }}{{ end }}
{{- $_ := set $data "ALLOWED_HOSTS" (include "rewardstack.hosts" (list . $settings.ALLOWED_HOSTS)) }}
{{- merge $data (include "rewardstack.model-paths" . | fromJson) | toJson }}
{{- end }}
