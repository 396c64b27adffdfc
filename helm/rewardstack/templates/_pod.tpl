{{/* Helpers of all pods. They take a dict: `root`, `name` of the service, its `values` (common ones included) and its
`description` (files/services.yaml). */}}

{{/* Labels and annotations of a pod; `checksums` are annotations that change with what the pod reads at its start. */}}
{{- define "rewardstack.pod-metadata" -}}
labels:
  {{- mergeOverwrite (deepCopy .root.Values.commonLabels) .values.podLabels (include "rewardstack.selector" (list .root .name) | fromYaml) | toYaml | nindent 2 }}
{{- with merge (deepCopy (.checksums | default dict)) .values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The pod's specification without containers and volumes. */}}
{{- define "rewardstack.pod" -}}
serviceAccountName: {{ .root.Values.serviceAccount.name | default (include "rewardstack.service" (list .root "pods")) }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- range $name := list "nodeSelector" "tolerations" "topologySpreadConstraints" "priorityClassName" "runtimeClassName" }}
{{- with index $.values $name }}
{{ $name }}: {{ toJson . }}
{{- end }}
{{- end }}
{{- include "rewardstack.affinity" . }}
{{ include "rewardstack.pod-security" . }}
terminationGracePeriodSeconds: {{ include "rewardstack.grace" . }}
{{- end }}

{{/* Replicas on different nodes and in different zones. A preference, unlike a topology spread constraint, also counts on
nodes that lack one of the labels. Replicas of another version do not count (Kubernetes 1.31). */}}
{{- define "rewardstack.affinity" -}}
{{- $affinity := .values.affinity }}
{{- if and (not $affinity) .root.Values.topologyKeys }}
{{- $terms := list }}
{{- $weight := 100 }}
{{- range $key := .root.Values.topologyKeys }}
{{- $labels := include "rewardstack.selector" (list $.root $.name) | fromYaml }}
{{- $term := dict "topologyKey" $key "labelSelector" (dict "matchLabels" $labels) "matchLabelKeys" (list "pod-template-hash") }}
{{- $terms = append $terms (dict "weight" $weight "podAffinityTerm" $term) }}
{{- $weight = max 1 (div $weight 2) }}
{{- end }}
{{- $affinity = dict "podAntiAffinity" (dict "preferredDuringSchedulingIgnoredDuringExecution" $terms) }}
{{- end }}
{{- with $affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The pod's user. Files on its volumes belong to the user's group. */}}
{{- define "rewardstack.pod-security" -}}
{{- $own := dict "seccompProfile" (dict "type" "RuntimeDefault") }}
{{- if .values.user }}
{{- $_ := set $own "runAsNonRoot" true }}
{{- if .root.Values.fixedUsers }}
{{- range $name := list "runAsUser" "runAsGroup" "fsGroup" }}{{ $_ := set $own $name $.values.user }}{{ end }}
{{- /* Volumes with models are not traversed at each start. */}}
{{- $_ := set $own "fsGroupChangePolicy" "OnRootMismatch" }}
{{- end }}
{{- end }}
securityContext:
  {{- mergeOverwrite $own .values.podSecurityContext | toYaml | nindent 2 }}
{{- end }}

{{/* What a container may do; a server that runs as root also writes to its own files. */}}
{{- define "rewardstack.container-security" -}}
{{- $own := dict "allowPrivilegeEscalation" false "capabilities" (dict "drop" (list "ALL")) }}
{{- if .values.user }}{{ $_ := set $own "readOnlyRootFilesystem" true }}{{ end }}
securityContext:
  {{- mergeOverwrite $own .values.securityContext | toYaml | nindent 2 }}
{{- end }}

{{/* Whether a service answers requests; empty where it does not. Such a pod still gets some while it stops. */}}
{{- define "rewardstack.serves" -}}
{{- if .description.probe.ready }}true{{ end }}
{{- end }}

{{/* Seconds between a pod's termination and its end by force. */}}
{{- define "rewardstack.grace" -}}
{{ add (ternary .root.Values.preStopSleepSeconds 0 (eq (include "rewardstack.serves" .) "true")) (include "rewardstack.drain-timeout" .root) .description.stop_margin }}
{{- end }}

{{/* Lifecycle hooks: a pod that stops answers for as long as DNS may return it. */}}
{{- define "rewardstack.lifecycle" -}}
{{- $own := dict }}
{{- if include "rewardstack.serves" . }}{{ $_ := set $own "preStop" (dict "sleep" (dict "seconds" .root.Values.preStopSleepSeconds)) }}{{ end }}
{{- range $name, $hook := .values.lifecycle }}{{ $_ := set $own $name $hook }}{{ end }}
{{- with $own }}
lifecycle:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* Seconds that a service may take to start. */}}
{{- define "rewardstack.startup-seconds" -}}
{{ .values.startupSeconds | default (index (include "rewardstack.defaults" .root | fromJson).timeouts .description.startup_timeout) | int }}
{{- end }}

{{/* Probes; `port` is the name of the port that is asked. */}}
{{- define "rewardstack.probes" -}}
{{- $probe := .description.probe }}
{{- $ready := dict "exec" (dict "command" $probe.command) }}
{{- $live := dict "exec" (dict "command" ($probe.live_command | default $probe.command)) }}
{{- if $probe.ready }}
{{- $ready = dict "httpGet" (dict "path" $probe.ready "port" .port) }}
{{- $live = dict "httpGet" (dict "path" $probe.live "port" .port) }}
{{- end -}}
startupProbe:
  {{- toYaml (ternary $live $ready (hasKey $probe "live_command")) | nindent 2 }}
  periodSeconds: 2
  timeoutSeconds: 10
  failureThreshold: {{ div (include "rewardstack.startup-seconds" . | int) 2 }}
readinessProbe:
  {{- toYaml $ready | nindent 2 }}
  periodSeconds: 5
  timeoutSeconds: 10
  failureThreshold: 2
livenessProbe:
  {{- toYaml $live | nindent 2 }}
  periodSeconds: 15
  timeoutSeconds: 30
  failureThreshold: 4
{{- end }}

{{/* The container of a service that runs the release's own image, without ports, environment and mounts. */}}
{{- define "rewardstack.own-container" -}}
name: {{ .name }}
image: {{ include "rewardstack.own-image" .root }}
imagePullPolicy: {{ .root.Values.imagePullPolicy }}
command: {{ .description.command | toJson }}
{{- with .values.extraArgs }}
args: {{ include "rewardstack.arguments" . }}
{{- end }}
{{ include "rewardstack.probes" . }}
{{- include "rewardstack.lifecycle" . }}
{{ include "rewardstack.container-security" . }}
resources:
  {{- toYaml .values.resources | nindent 2 }}
{{- end }}

{{/* Environment: that of the description, `variables` by name, `entries` with a source, `sources` of envFrom. Those of
extraEnv win. */}}
{{- define "rewardstack.environment" -}}
{{- $own := list }}
{{- range $name, $value := merge (deepCopy (.variables | default dict)) (.description.environment | default dict) }}{{ $own = append $own (dict "name" $name "value" (include "rewardstack.text" $value)) }}{{ end }}
{{- $extra := list }}
{{- range .values.extraEnv }}{{ $extra = append $extra .name }}{{ end }}
{{- $entries := list }}
{{- range concat $own (.entries | default list) }}{{ if not (has .name $extra) }}{{ $entries = append $entries . }}{{ end }}{{ end }}
{{- with concat (.sources | default list) .values.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with concat $entries .values.extraEnv }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The mounts of a container, `mounts` and those of the values. */}}
{{- define "rewardstack.mounts" -}}
volumeMounts:
  {{- concat .mounts .values.extraVolumeMounts | toYaml | nindent 2 }}
{{- end }}

{{/* The volumes of a pod, `volumes` and those of the values. */}}
{{- define "rewardstack.volumes" -}}
volumes:
  {{- concat .volumes .values.extraVolumes | toYaml | nindent 2 }}
{{- end }}

{{/* The volume with the keys in `keys`; `mode` of its files. */}}
{{- define "rewardstack.keys-volume" -}}
{{- $items := list }}
{{- range .keys }}{{ $items = append $items (dict "key" . "path" .) }}{{ end }}
{{- dict "name" "keys" "secret" (dict "secretName" (include "rewardstack.keys-secret" .root) "defaultMode" .mode "items" $items) | toJson }}
{{- end }}

{{/* The number of replicas. An autoscaler sets it, so it keeps the number that the cluster has: Helm would else reset it
to one. */}}
{{- define "rewardstack.replicas" -}}
{{- if not .scaled }}
replicas: {{ .values.replicas }}
{{- else }}
{{- with lookup "apps/v1" "Deployment" .root.Release.Namespace (include "rewardstack.service" (list .root .name)) }}
replicas: {{ .spec.replicas }}
{{- end }}
{{- end }}
{{- end }}

{{/* A headless Service, which returns the address of each pod that is ready: dict of root, name, port (its number),
port-name and protocol. */}}
{{- define "rewardstack.headless" -}}
apiVersion: v1
kind: Service
{{ include "rewardstack.metadata" (list .root (.service | default .name)) }}
spec:
  clusterIP: None
  selector:
    {{- include "rewardstack.selector" (list .root .name) | nindent 4 }}
  ports:
    - {name: {{ .port }}, port: {{ .number }}, targetPort: {{ .port }}, appProtocol: {{ .protocol | default "http" }}}
{{- end }}
