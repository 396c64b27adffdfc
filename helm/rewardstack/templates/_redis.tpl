{{/* What the pod helpers need of a Redis, without `root`, as JSON: list $ "cache". Its memory limit follows maxMemory. */}}
{{- define "rewardstack.redis-of" -}}
{{- $pod := include "rewardstack.pod-of" . | fromJson }}
{{- $factor := $pod.description.memory.factor }}
{{- $needed := mul (include "rewardstack.bytes" $pod.values.maxMemory | int64) $factor }}
{{- $limits := $pod.values.resources.limits | default dict }}
{{- with $limits.memory }}
{{- if lt (include "rewardstack.bytes" . | int64) $needed }}
{{- fail (printf "%s.resources.limits.memory: %s is less than %v times maxMemory (%s), which Redis may take; raise it, or leave it out" (index $ 1) . $factor $pod.values.maxMemory) }}
{{- end }}
{{- else }}
{{- $limits = merge (dict "memory" (printf "%dMi" (div (add $needed 1048575) 1048576))) $limits }}
{{- end }}
{{- $_ := set $pod.values.resources "limits" $limits }}
{{- $pod | toJson }}
{{- end }}

{{/* The pod template of a Redis. */}}
{{- define "rewardstack.redis-template" -}}
metadata:
  {{- include "rewardstack.pod-metadata" . | nindent 2 }}
spec:
  {{- include "rewardstack.pod" . | nindent 2 }}
  containers:
    - name: redis
      image: {{ include "rewardstack.image" (list .root .values.image) }}
      imagePullPolicy: {{ .root.Values.imagePullPolicy }}
      command: {{ include "rewardstack.redis-command" . }}
      {{- with .values.extraArgs }}
      args: {{ include "rewardstack.arguments" . }}
      {{- end }}
      {{- include "rewardstack.environment" . | indent 6 }}
      ports:
        - {name: redis, containerPort: {{ .description.port }}}
      {{- include "rewardstack.probes" . | nindent 6 }}
      {{- include "rewardstack.lifecycle" . | indent 6 }}
      {{- include "rewardstack.container-security" . | nindent 6 }}
      resources:
        {{- toYaml .values.resources | nindent 8 }}
      {{- include "rewardstack.mounts" . | nindent 6 }}
  {{- include "rewardstack.volumes" . | nindent 2 }}
{{- end }}

{{/* Its command as JSON. */}}
{{- define "rewardstack.redis-command" -}}
{{- $command := list }}
{{- range .description.command }}{{ $command = append $command (replace "{config}" "/etc/redis/redis.conf" .) }}{{ end }}
{{- range .description.options }}{{ $command = append $command .flag }}{{ $command = append $command $.values.maxMemory }}{{ end }}
{{- concat $command (list "--port" (toString .description.port) "--dir" "/data") | toJson }}
{{- end }}
