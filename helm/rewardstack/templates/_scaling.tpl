{{/* What is scaled, and between which numbers: list $ service words-for-an-error values. */}}
{{- define "rewardstack.scaled" -}}
{{- $values := index . 3 -}}
{{- if lt (int $values.max) (int $values.min) }}
{{- fail (printf "%s: max (%d) is less than min (%d)" (index . 2) (int $values.max) (int $values.min)) }}
{{- end -}}
scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: {{ include "rewardstack.service" (list (index . 0) (index . 1)) }}}
minReplicas: {{ int $values.min }}
maxReplicas: {{ int $values.max }}
{{- end }}

{{/* How fast, in seconds: list before-more before-less between-two-less. Replicas that end drain one at a time. */}}
{{- define "rewardstack.behavior" -}}
scaleUp:
  stabilizationWindowSeconds: {{ index . 0 }}
  policies: [{type: Pods, value: 4, periodSeconds: 60}]
scaleDown:
  stabilizationWindowSeconds: {{ index . 1 }}
  policies: [{type: Pods, value: 1, periodSeconds: {{ index . 2 }}}]
{{- end }}
