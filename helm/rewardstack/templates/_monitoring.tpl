{{/* Labels of all series of this release, as matchers of a query. */}}
{{- define "rewardstack.matchers" -}}
namespace={{ .Release.Namespace | quote }}, release={{ include "rewardstack.fullname" . | quote }}
{{- end }}

{{/* What Prometheus scrapes as JSON: of each Service its job and port. */}}
{{- define "rewardstack.scraped" -}}
{{- $scraped := dict
  "rules" (dict "job" "rules" "port" "http")
  "gateway-metrics" (dict "job" "gateway" "port" "metrics")
  "worker-metrics" (dict "job" "worker" "port" "metrics") }}
{{- range $service, $model := include "rewardstack.models" . | fromJson }}
{{- $_ := set $scraped $service (dict "job" $model.kind "port" "http") }}
{{- end }}
{{- $scraped | toJson }}
{{- end }}

{{/* The groups of alerts as JSON. `release=""` in their queries stands for a stack outside Kubernetes; here each alert is
about this release alone, and says so. */}}
{{- define "rewardstack.alerts" -}}
{{- $text := .Files.Get "files/monitoring/alerts.yml" | replace `release=""` (include "rewardstack.matchers" .) }}
{{- $groups := ($text | fromYaml).groups }}
{{- range $group := $groups }}
{{- range $rule := $group.rules }}
{{- $_ := set $rule "labels" (merge (dict "namespace" $.Release.Namespace "release" (include "rewardstack.fullname" $)) $rule.labels) }}
{{- end }}
{{- end }}
{{- $groups | toJson }}
{{- end }}
