{{/* The prefix of all names of a release. */}}
{{- define "rewardstack.fullname" -}}
{{- $name := .Release.Name }}
{{- with .Values.nameOverride | default (ternary "" .Chart.Name (eq .Chart.IsRoot true)) }}{{ $name = printf "%s-%s" $name . }}{{ end }}
{{- $name = .Values.fullnameOverride | default $name }}
{{- if not (regexMatch "^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$" $name) }}
{{- fail (printf "names of this release begin with %s: Services need up to 40 lower-case letters, digits and hyphens, the first a letter; set fullnameOverride" $name) }}
{{- end }}
{{- $name }}
{{- end }}

{{/* The name of a service: list $ "rules". */}}
{{- define "rewardstack.service" -}}
{{ include "rewardstack.fullname" (index . 0) }}-{{ index . 1 }}
{{- end }}

{{/* Its DNS name: list $ "rules". */}}
{{- define "rewardstack.host" -}}
{{ include "rewardstack.service" . }}.{{ (index . 0).Release.Namespace }}.svc.{{ (index . 0).Values.clusterDomain }}
{{- end }}

{{/* The gateway's URL of a service: list $ "rules". */}}
{{- define "rewardstack.gateway" -}}
http://{{ include "rewardstack.host" (list (index . 0) "gateway") }}:{{ include "rewardstack.gateway-port" . }}
{{- end }}

{{/* Labels that select the pods of a service; Kubernetes does not let them change: list $ "rules". */}}
{{- define "rewardstack.selector" -}}
app.kubernetes.io/name: {{ (index . 0).Values.nameOverride | default (index . 0).Chart.Name }}
app.kubernetes.io/instance: {{ (index . 0).Release.Name | quote }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* Labels of an object: list $ "rules". */}}
{{- define "rewardstack.labels" -}}
{{ include "rewardstack.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ (index . 0).Chart.Name }}-{{ (index . 0).Chart.Version }}
{{- with (index . 0).Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "rewardstack.metadata" -}}
metadata:
  name: {{ include "rewardstack.service" . }}
  labels:
    {{- include "rewardstack.labels" . | nindent 4 }}
{{- end }}

{{/* Host names that servers without keys accept: list $ those-of-the-values. Names below the cluster's domain are
accepted; one that ends with the namespace, and those of an Ingress, could be anybody's. */}}
{{- define "rewardstack.hosts" -}}
{{- $ := index . 0 }}
{{- $names := list (index . 1) (printf ".%s" $.Values.clusterDomain) (printf "%s.%s" (include "rewardstack.service" (list $ "gateway")) $.Release.Namespace) }}
{{- range list $.Values.ingress $.Values.httpRoute }}
{{- if .enabled }}{{ $names = concat $names (values .hosts | sortAlpha) }}{{ end }}
{{- end }}
{{- compact $names | uniq | join "," | replace "*." "." }}
{{- end }}
