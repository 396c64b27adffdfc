{{/* What every pod has, whatever runs in it: list $ values-of-the-service. */}}
{{- define "rewardstack.pod" -}}
{{- $values := index . 1 -}}
serviceAccountName: {{ (index . 0).Values.serviceAccount.name | default (include "rewardstack.service" (list (index . 0) "pods")) }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with (index . 0).Values.imagePullSecrets }}
imagePullSecrets:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.runtimeClassName }}
runtimeClassName: {{ . }}
{{- end }}
{{- end }}

{{/* Replicas stand apart where they can: list $ service. */}}
{{- define "rewardstack.spread" -}}
{{- $ := index . 0 -}}
{{- $service := index . 1 -}}
{{- with $.Values.spreadOver }}
topologySpreadConstraints:
  {{- range . }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    matchLabelKeys: [pod-template-hash]
    labelSelector:
      matchLabels:
        {{- include "rewardstack.selector" (list $ $service) | nindent 8 }}
  {{- end }}
{{- end }}
{{- end }}

{{/* A pod's user: list uid, where 0 is the image's own. Files that it writes belong to that group. */}}
{{- define "rewardstack.user" -}}
securityContext:
  seccompProfile: {type: RuntimeDefault}
  {{- if index . 0 }}
  runAsNonRoot: true
  runAsUser: {{ int64 (index . 0) }}
  runAsGroup: {{ int64 (index . 0) }}
  fsGroup: {{ int64 (index . 0) }}
  # A volume of models is not gone through at each start.
  fsGroupChangePolicy: OnRootMismatch
  {{- end }}
{{- end }}

{{/* What a container may do: nothing but run, in files that nobody can change. */}}
{{- define "rewardstack.confined" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
{{- end }}

{{/* How often a service is asked whether it is well, of what starts, ready, lives and seldom is set: list $probe
seconds-to-start. It has started by `starts`, which is `ready` unless it is said. */}}
{{- define "rewardstack.probes" -}}
{{- $probe := index . 0 -}}
{{- $every := ternary 3 1 (hasKey $probe "seldom") -}}
startupProbe:
  {{- toYaml ($probe.starts | default $probe.ready) | nindent 2 }}
  periodSeconds: {{ mul 2 $every }}
  timeoutSeconds: 10
  failureThreshold: {{ div (int (index . 1)) (mul 2 $every) }}
readinessProbe:
  {{- toYaml $probe.ready | nindent 2 }}
  periodSeconds: {{ mul 5 $every }}
  timeoutSeconds: 10
  failureThreshold: 2
livenessProbe:
  {{- toYaml $probe.lives | nindent 2 }}
  periodSeconds: {{ mul 15 $every }}
  timeoutSeconds: 30
  failureThreshold: 4
{{- end }}

{{/* Requests still come for as long as the cluster's DNS may name the pod; a server that stops would refuse them. */}}
{{- define "rewardstack.drain" -}}
lifecycle:
  preStop: {sleep: {seconds: {{ .Values.leaveSeconds }}}}
{{- end }}
