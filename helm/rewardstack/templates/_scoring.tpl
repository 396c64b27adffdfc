{{/* The settings of whoever scores, as JSON: the chart's own, and the values' over them. */}}
{{- define "rewardstack.settings" -}}
{{- $paths := list }}
{{- range .Values.files.functions }}{{ $paths = append $paths (printf "/srv/files/%s" .) }}{{ end }}
{{- $own := dict "REWARD_HOST" (ternary "::" "0.0.0.0" .Values.ipv6) "REWARD_PORT" (include "rewardstack.port" (list . "rules")) }}
{{- $_ := set $own "REWARD_SERVER_URL" (include "rewardstack.gateway" (list . "rules")) }}
{{- if include "rewardstack.default-judge" . }}
{{- $_ := set $own "LLM_JUDGE_SERVER_URL" (include "rewardstack.gateway" (list . "judge")) }}
{{- end }}
{{- if .Values.embedding.enabled }}
{{- $_ := set $own "EMBEDDING_SERVER_URL" (include "rewardstack.gateway" (list . "embedding")) }}
{{- end }}
{{- range $redis := list "cache" "queue" }}
{{- if (index $.Values $redis).enabled }}
{{- $_ := set $own (printf "REWARD_%s_URL" (upper $redis)) (printf "redis://%s:%s/0" (include "rewardstack.host" (list $ $redis)) (include "rewardstack.port" (list $ "redis"))) }}
{{- end }}
{{- end }}
{{- if $paths }}{{ $_ := set $own "REWARD_FUNCTIONS" (join ":" $paths) }}{{ end }}
{{- $tables := list }}
{{- with .Values.files.routes }}{{ $tables = append $tables (printf "/srv/files/%s" .) }}{{ end }}
{{- if include "rewardstack.routes" . }}{{ $tables = append $tables "/srv/judges/routes.json" }}{{ end }}
{{- with $tables }}{{ $_ := set $own "REWARDSTACK_ROUTES" (join ":" .) }}{{ end }}
{{- with .Values.files.dataset }}{{ $_ := set $own "DATASET_PATH" (printf "/srv/files/%s" .) }}{{ end }}
{{- $given := dict }}
{{- range $name, $value := .Values.settings }}{{ $_ := set $given $name (include "rewardstack.text" $value) }}{{ end }}
{{- $_ := set $given "ALLOWED_HOSTS" (include "rewardstack.hosts" (list . (index $given "ALLOWED_HOSTS"))) }}
{{- mergeOverwrite $own $given | toJson }}
{{- end }}

{{/* The seconds that a service which stops may take to finish requests in flight. */}}
{{- define "rewardstack.graceful" -}}
{{- .Values.settings.DRAIN_TIMEOUT | default (.Files.Get "files/settings.yaml" | fromYaml).rules.DRAIN_TIMEOUT | int }}
{{- end }}

{{/* Changes with whatever these pods read when they start, but for keys: who may see pods would see a hash of them. */}}
{{- define "rewardstack.scoring-checksum" -}}
checksum/settings: {{ list (include "rewardstack.settings" .) (include "rewardstack.routes" .) | toJson | sha256sum }}
{{- end }}

{{/* What whoever scores is given, reward server, workers and the test pod: list $ further-variables resources. */}}
{{- define "rewardstack.scoring-environment" -}}
{{- $ := index . 0 -}}
envFrom:
  - configMapRef: {name: {{ include "rewardstack.service" (list $ "settings") }}}
{{- $environment := list }}
{{- range include "rewardstack.scoring-keys" $ | fromJsonArray }}
{{- $environment = append $environment (dict "name" (printf "%s_FILE" (upper .)) "value" (printf "/run/secrets/rewardstack/%s" .)) }}
{{- end }}
{{- if and (index . 2).requests.cpu (not (hasKey $.Values.settings "VERIFY_PROCESSES")) }}
{{- /* A pod sees all processors of its node. */}}
{{- $environment = append $environment (dict "name" "VERIFY_PROCESSES" "valueFrom" (dict "resourceFieldRef" (dict "resource" "requests.cpu"))) }}
{{- end }}
{{- with concat $environment (index . 1) }}
env:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* The names of their keys, as JSON. */}}
{{- define "rewardstack.scoring-keys" -}}
{{- without (include "rewardstack.keys" . | fromJsonArray) "hf_token" | toJson }}
{{- end }}

{{- define "rewardstack.scoring-mounts" -}}
volumeMounts:
  - {name: tmp, mountPath: /tmp}
  {{- if include "rewardstack.scoring-keys" . | fromJsonArray }}
  - {name: keys, mountPath: /run/secrets/rewardstack, readOnly: true}
  {{- end }}
  {{- if .Values.files.source }}
  - {name: files, mountPath: /srv/files, readOnly: true}
  {{- end }}
  {{- if include "rewardstack.routes" . }}
  - {name: judges, mountPath: /srv/judges, readOnly: true}
  {{- end }}
{{- end }}

{{- define "rewardstack.scoring-volumes" -}}
volumes:
  - {name: tmp, emptyDir: {}}
  {{- with include "rewardstack.scoring-keys" . | fromJsonArray }}
  - name: keys
    secret:
      secretName: {{ include "rewardstack.keys-secret" $ }}
      defaultMode: 0440
      items:
        {{- range . }}
        - {key: {{ . }}, path: {{ . }}}
        {{- end }}
  {{- end }}
  {{- with .Values.files.source }}
  - name: files
    {{- toYaml (ternary (dict "emptyDir" dict) . (hasKey . "image")) | nindent 4 }}
  {{- end }}
  {{- if include "rewardstack.routes" . }}
  - name: judges
    configMap: {name: {{ include "rewardstack.service" (list . "routes") }}}
  {{- end }}
{{- end }}

{{/* Files of an image are copied before the program starts, for volumes of images are not everywhere. */}}
{{- define "rewardstack.scoring-files" -}}
{{- with .Values.files.source.image }}
initContainers:
  - name: files
    image: {{ include "rewardstack.image" (list $ .reference) }}
    imagePullPolicy: {{ .pullPolicy | default $.Values.imagePullPolicy }}
    command: [cp, -R, "{{ trimSuffix "/" (required "files.source.image.path: the folder of the image that has the files" .path) }}/.", /srv/files]
    {{- include "rewardstack.confined" $ | nindent 4 }}
    volumeMounts:
      - {name: files, mountPath: /srv/files}
{{- end }}
{{- end }}
