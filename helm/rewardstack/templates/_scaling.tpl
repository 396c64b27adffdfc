{{/* The Deployment that is scaled, and its bounds: list $ service name-of-the-value values. */}}
{{- define "rewardstack.scaled" -}}
{{- $values := index . 3 -}}
{{- if lt (int $values.max) (int $values.min) }}
{{- fail (printf "%s: max (%d) is less than min (%d)" (index . 2) (int $values.max) (int $values.min)) }}
{{- end -}}
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include "rewardstack.service" (list (index . 0) (index . 1)) }}}
minReplicas: {{ int $values.min }}
maxReplicas: {{ int $values.max }}
{{- end }}

{{/* Seconds: list before-more before-fewer between-two-fewer. Replicas that stop drain one at a time. */}}
{{- define "rewardstack.behavior" -}}
scaleUp:
  stabilizationWindowSeconds: {{ index . 0 }}
  policies: [{type: Pods, value: 4, periodSeconds: 60}]
scaleDown:
  stabilizationWindowSeconds: {{ index . 1 }}
  policies: [{type: Pods, value: 1, periodSeconds: {{ index . 2 }}}]
{{- end }}

{{/* The same for model servers, which load for minutes: dict root description. Kubernetes allows 1800 s. */}}
{{- define "rewardstack.model-behavior" -}}
{{- $seconds := min 1800 (max 300 (add 60 (include "rewardstack.grace" .))) }}
{{- include "rewardstack.behavior" (list 30 (max 900 $seconds) $seconds) }}
{{- end }}

{{/* The load of a model server: list kind matchers. The servers' gauges are snapshots that jump between all and nothing,
and a HorizontalPodAutoscaler takes the lowest of its window: hence the average of a minute. */}}
{{- define "rewardstack.load" -}}
{{- if ne (index . 0) "embedding" }}
{{- printf "avg_over_time(vllm:num_requests_running{%s}[1m]) + avg_over_time(vllm:num_requests_waiting{%s}[1m])" (index . 1) (index . 1) }}
{{- else }}
{{- printf "avg_over_time(te_queue_size{%s}[1m])" (index . 1) }}
{{- end }}
{{- end }}

{{/* KEDA's query of a model server: list $ service values. */}}
{{- define "rewardstack.scaling-query" -}}
{{- $model := index . 2 }}
{{- $labels := printf "namespace=%q,service=%q" (index . 0).Release.Namespace (include "rewardstack.service" .) }}
{{- if ne $model.kind "embedding" }}
{{- $labels = printf "%s,model_name=%q" $labels (include "rewardstack.model" $model) }}
{{- end }}
{{- printf "sum(%s)" (include "rewardstack.load" (list $model.kind $labels)) }}
{{- end }}
