{{/* Pods of services as peers of a policy, as JSON: list $ services. */}}
{{- define "rewardstack.peers" }}
{{- $ := index . 0 }}
{{- $peers := list }}
{{- range index . 1 }}{{ $peers = append $peers (dict "podSelector" (dict "matchLabels" (include "rewardstack.selector" (list $ .) | fromYaml))) }}{{ end }}
{{- $peers | toJson }}
{{- end }}

{{/* Namespaces with these labels as peers, as JSON; none without labels. */}}
{{- define "rewardstack.namespaces" }}
{{- if . }}{{ list (dict "namespaceSelector" (dict "matchLabels" .)) | toJson }}{{ else }}[]{{ end }}
{{- end }}

{{/* For each service its ports, the peers that may reach them (all if there are none), the port of its metrics, and
whether it is `isolated`: connects to nothing itself. As JSON. */}}
{{- define "rewardstack.policies" }}
{{- $direct := include "rewardstack.namespaces" .Values.networkPolicies.direct | fromJsonArray }}
{{- $ports := include "rewardstack.gateway-ports" . | fromJson }}
{{- $open := list }}
{{- range include "rewardstack.served" . | fromJsonArray }}{{ $open = append $open (index $ports .) }}{{ end }}
{{- $clients := list }}
{{- with .Values.networkPolicies.clients }}{{ $clients = concat (list (dict "podSelector" dict)) (include "rewardstack.namespaces" . | fromJsonArray) }}{{ end }}
{{- $rules := include "rewardstack.port" (list . "rules") | int }}
{{- $policies := dict
  "rules" (dict "ports" (list $rules) "peers" (include "rewardstack.peers" (list . (list "gateway")) | fromJsonArray) "metrics" $rules)
  "worker" (dict "ports" list "peers" list "metrics" (include "rewardstack.gateway-port" (list . "worker-metrics") | int))
  "gateway" (dict "ports" $open "peers" $clients "metrics" $ports.metrics) }}
{{- range $service, $model := include "rewardstack.models" . | fromJson }}
{{- $port := include "rewardstack.port" (list $ $model.kind) | int }}
{{- $peers := concat (include "rewardstack.peers" (list $ (list "gateway" "rules")) | fromJsonArray) $direct }}
{{- $_ := set $policies $service (dict "ports" (list $port) "peers" $peers "metrics" $port) }}
{{- end }}
{{- if .Values.cache.enabled }}
{{- $peers := concat (include "rewardstack.peers" (list . (list "rules" "worker" "check")) | fromJsonArray) $direct }}
{{- $_ := set $policies "cache" (dict "ports" (list (include "rewardstack.port" (list . "cache") | int)) "peers" $peers "isolated" true) }}
{{- end }}
{{- if include "rewardstack.has-sandbox" . }}
{{- $peers := include "rewardstack.peers" (list . (list "rules" "worker")) | fromJsonArray }}
{{- $_ := set $policies "sandbox" (dict "ports" (list (include "rewardstack.port" (list . "sandbox") | int)) "peers" $peers "isolated" true) }}
{{- end }}
{{- if .Values.queue.enabled }}
{{- $peers := include "rewardstack.peers" (list . (list "rules" "worker")) | fromJsonArray }}
{{- $_ := set $policies "queue" (dict "ports" (list (include "rewardstack.port" (list . "queue") | int)) "peers" $peers "isolated" true) }}
{{- end }}
{{- $policies | toJson }}
{{- end }}
