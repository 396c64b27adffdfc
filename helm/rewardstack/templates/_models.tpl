{{/* The model that a server serves: list values. */}}
{{- define "rewardstack.model" -}}
{{ .model | default (index . .device).model }}
{{- end }}

{{/* What servers of models have in common: a dict of root, service, values, command (its flags), keys by variable,
variables, port, and the folder where models are kept. */}}
{{- define "rewardstack.model-server" -}}
{{- $ := .root }}{{ $service := .service }}{{ $values := .values }}
{{- $has := include "rewardstack.keys" $ | fromJsonArray }}
{{- $keys := dict }}
{{- range $variable, $key := .keys }}
{{- if has $key $has }}
{{- $_ := set $keys $variable $key }}
{{- end }}
{{- end }}
{{- $given := list }}
{{- range $variable, $key := $keys }}{{ $given = append $given (printf "%s=/run/secrets/rewardstack/%s" $variable $key) }}{{ end }}
{{- $variables := deepCopy .variables }}
{{- range $values.extraEnv }}{{ $variables = omit $variables .name }}{{ end }}
{{- $environment := list }}
{{- range $name, $value := $variables }}{{ $environment = append $environment (dict "name" $name "value" $value) }}{{ end }}
{{- $environment = concat $environment $values.extraEnv }}
{{- if gt (len $values.modelCache) 1 }}
{{- fail (printf "modelCache of %s: one volume, not %s; set the others to null" $service (keys $values.modelCache | sortAlpha | join " and ")) }}
{{- end }}
{{- $asks := dict "httpGet" (dict "path" "/health" "port" "http") }}
{{- $resources := deepCopy $values.resources }}
{{- if eq $values.device "gpu" }}
{{- $resources = mergeOverwrite $resources (dict "limits" (dict $values.gpuResource ($values.gpus | toString))) }}
{{- end }}
apiVersion: v1
kind: Service
{{ include "rewardstack.metadata" (list $ $service) }}
spec:
  clusterIP: None
  selector:
    {{- include "rewardstack.selector" (list $ $service) | nindent 4 }}
  ports:
    - {name: http, port: {{ .port }}, targetPort: http}
---
apiVersion: apps/v1
kind: Deployment
{{ include "rewardstack.metadata" (list $ $service) }}
spec:
  {{- if eq $values.scaling.by "none" }}
  replicas: {{ $values.replicas }}
  {{- end }}
  {{- if eq $values.device "gpu" }}
  # A new replica needs GPUs, which only one that stops has.
  strategy: {rollingUpdate: {maxSurge: 0, maxUnavailable: 1}}
  {{- end }}
  # A model that loads is no failed rollout.
  progressDeadlineSeconds: {{ add $values.startupSeconds $.Values.leaveSeconds $values.drainSeconds 90 }}
  selector:
    matchLabels:
      {{- include "rewardstack.selector" (list $ $service) | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "rewardstack.selector" (list $ $service) | nindent 8 }}
      annotations:
        checksum/configuration: {{ list ($.Files.Get "files/models/with_keys.sh") ($.Files.Get (printf "files/judge/vllm-%s.yaml" $values.device)) | toJson | sha256sum }}
    spec:
      {{- include "rewardstack.pod" (list $ $values) | nindent 6 }}
      {{- include "rewardstack.spread" (list $ $service) | nindent 6 }}
      {{- include "rewardstack.user" (list $values.user) | nindent 6 }}
      terminationGracePeriodSeconds: {{ add $.Values.leaveSeconds $values.drainSeconds 30 }}
      containers:
        - name: {{ $service }}
          image: {{ include "rewardstack.image" (list $ ($values.image | default (index $values $values.device).image)) }}
          imagePullPolicy: {{ $.Values.imagePullPolicy }}
          command:
            {{- toYaml (concat (list "sh" "/etc/rewardstack/with_keys.sh") $given .command $values.extraArgs) | nindent 12 }}
          {{- with $environment }}
          env:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          ports:
            - {name: http, containerPort: {{ .port }}}
          {{- include "rewardstack.probes" (list (dict "ready" $asks "lives" $asks) $values.startupSeconds) | nindent 10 }}
          {{- include "rewardstack.drain" $ | nindent 10 }}
          {{- if $values.user }}
          {{- include "rewardstack.confined" $ | nindent 10 }}
          {{- else }}
          securityContext:
            allowPrivilegeEscalation: false
            capabilities: {drop: [ALL]}
          {{- end }}
          resources:
            {{- toYaml $resources | nindent 12 }}
          volumeMounts:
            - {name: configuration, mountPath: /etc/rewardstack, readOnly: true}
            - {name: models, mountPath: {{ .folder }}}
            - {name: tmp, mountPath: /tmp}
            - {name: shm, mountPath: /dev/shm}
            {{- if $given }}
            - {name: keys, mountPath: /run/secrets/rewardstack, readOnly: true}
            {{- end }}
      volumes:
        - name: configuration
          configMap: {name: {{ include "rewardstack.service" (list $ "models") }}}
        - name: models
          {{- toYaml ($values.modelCache | default (dict "emptyDir" dict)) | nindent 10 }}
        - {name: tmp, emptyDir: {}}
        - name: shm
          emptyDir: {medium: Memory, sizeLimit: {{ $values.sharedMemory }}}
        {{- if $given }}
        - name: keys
          secret:
            secretName: {{ include "rewardstack.keys-secret" $ }}
            defaultMode: 0444
            items:
              {{- range $keys }}
              - {key: {{ . }}, path: {{ . }}}
              {{- end }}
        {{- end }}
{{- end }}
