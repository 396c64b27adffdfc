{{/* Pods of services, as peers in JSON: list $ services. */}}
{{- define "rewardstack.pods-of" }}
{{- $ := index . 0 }}
{{- $peers := list }}
{{- range index . 1 }}{{ $peers = append $peers (dict "podSelector" (dict "matchLabels" (include "rewardstack.selector" (list $ .) | fromYaml))) }}{{ end }}
{{- $peers | toJson }}
{{- end }}

{{/* Namespaces with these labels, as peers in JSON; none without labels. */}}
{{- define "rewardstack.namespaces" }}
{{- if . }}{{ list (dict "namespaceSelector" (dict "matchLabels" .)) | toJson }}{{ else }}[]{{ end }}
{{- end }}
