{{/* The settings of reward server and workers as JSON: the chart's own, and the values' over them. */}}
{{- define "rewardstack.settings" -}}
{{- $own := dict "REWARD_HOST" (ternary "::" "0.0.0.0" .Values.ipv6) "REWARD_PORT" (include "rewardstack.port" (list . "rules")) }}
{{- $_ := set $own "REWARD_SERVER_URL" (include "rewardstack.gateway" (list . "rules")) }}
{{- if include "rewardstack.default-judge" . }}
{{- $_ := set $own "LLM_JUDGE_SERVER_URL" (include "rewardstack.gateway" (list . "judge")) }}
{{- end }}
{{- if .Values.embedding.enabled }}
{{- $_ := set $own "EMBEDDING_SERVER_URL" (include "rewardstack.gateway" (list . "embedding")) }}
{{- end }}
{{- if .Values.rewardModel.model }}
{{- $_ := set $own "REWARD_MODEL_SERVER_URL" (printf "%s/reward_models/reward_model" (include "rewardstack.gateway" (list . "judge"))) }}
{{- end }}
{{- if include "rewardstack.has-sandbox" . }}
{{- $_ := set $own "CODE_SANDBOX_URL" (printf "http://%s:%s" (include "rewardstack.host" (list . "sandbox")) (include "rewardstack.port" (list . "sandbox"))) }}
{{- end }}
{{- range $redis := list "cache" "queue" }}
{{- if (index $.Values $redis).enabled }}
{{- $_ := set $own (printf "REWARD_%s_URL" (upper $redis)) (printf "redis://%s:%s/0" (include "rewardstack.host" (list $ $redis)) (include "rewardstack.port" (list $ $redis))) }}
{{- end }}
{{- end }}
{{- $own = merge $own (include "rewardstack.file-settings" . | fromJson) }}
{{- $given := dict }}
{{- range $name, $value := .Values.settings }}{{ $_ := set $given $name (include "rewardstack.text" $value) }}{{ end }}
{{- $_ := set $given "ALLOWED_HOSTS" (include "rewardstack.hosts" (list . (index $given "ALLOWED_HOSTS"))) }}
{{- mergeOverwrite $own $given | toJson }}
{{- end }}

{{/* Whether the release has a sandbox; empty where programs are not run, or by an external one. */}}
{{- define "rewardstack.has-sandbox" -}}
{{- if and (eq (.Values.settings.CODE | default "off") "on") (not (or .Values.settings.CODE_SANDBOX_URL .Values.settings.SANDBOX_FUSION_URL)) }}true{{ end }}
{{- end }}

{{/* The settings of the sandbox as JSON: those of reward servers that concern programs and requests, and no others. */}}
{{- define "rewardstack.sandbox-variables" -}}
{{- $settings := include "rewardstack.settings" . | fromJson }}
{{- $own := pick $settings "REWARD_HOST" "REWARD_PORT" "ALLOWED_HOSTS" "DRAIN_TIMEOUT" "MAX_BODY_BYTES" "CODE_PROCESSES" "CODE_TIMEOUT" "CODE_BOUNDARY" "CODE_PYTHON" "CODE_CXX" }}
{{- $own | toJson }}
{{- end }}

{{/* The settings that name files as JSON. */}}
{{- define "rewardstack.file-settings" -}}
{{- $own := dict }}
{{- $paths := list }}
{{- range .Values.files.functions }}{{ $paths = append $paths (printf "/srv/files/%s" .) }}{{ end }}
{{- if $paths }}{{ $_ := set $own "REWARD_FUNCTIONS" (join ":" $paths) }}{{ end }}
{{- $tables := list }}
{{- with .Values.files.routes }}{{ $tables = append $tables (printf "/srv/files/%s" .) }}{{ end }}
{{- if include "rewardstack.routes" . }}{{ $tables = append $tables "/srv/judges/routes.json" }}{{ end }}
{{- with $tables }}{{ $_ := set $own "REWARDSTACK_ROUTES" (join ":" .) }}{{ end }}
{{- with .Values.files.dataset }}{{ $_ := set $own "DATASET_PATH" (printf "/srv/files/%s" .) }}{{ end }}
{{- $own | toJson }}
{{- end }}

{{/* Annotations that change with what the pods read at their start. Not with keys: who sees pods would see a hash. */}}
{{- define "rewardstack.scoring-checksums" -}}
checksum/settings: {{ list (include "rewardstack.settings" .) (include "rewardstack.routes" .) | toJson | sha256sum }}
{{- end }}

{{/* The names of the keys that a service mounts, as JSON. */}}
{{- define "rewardstack.scoring-keys" -}}
{{- $found := list }}
{{- $there := include "rewardstack.keys" .root | fromJsonArray }}
{{- range .description.secret_files }}{{ if has (lower .) $there }}{{ $found = append $found (lower .) }}{{ end }}{{ end }}
{{- $found | sortAlpha | toJson }}
{{- end }}

{{/* The environment of reward server, workers and test pod; `variables` are further ones. */}}
{{- define "rewardstack.scoring-environment" -}}
{{- $variables := deepCopy (.variables | default dict) }}
{{- range include "rewardstack.scoring-keys" . | fromJsonArray }}
{{- $_ := set $variables (printf "%s_FILE" (upper .)) (printf "/run/secrets/rewardstack/%s" .) }}
{{- end }}
{{- if and .root.Values.rewardModel.model (hasKey $variables "LLM_JUDGE_SERVER_API_KEY_FILE") }}
{{- /* The reward model is reached at the judge's port, with the judge's key. */}}
{{- $_ := set $variables "REWARD_MODEL_SERVER_API_KEY_FILE" $variables.LLM_JUDGE_SERVER_API_KEY_FILE }}
{{- end }}
{{- $entries := list }}
{{- if and (.values.resources.requests | default dict).cpu (not (hasKey .root.Values.settings "VERIFY_PROCESSES")) }}
{{- /* A pod sees all CPUs of its node. */}}
{{- $entries = append $entries (dict "name" "VERIFY_PROCESSES" "valueFrom" (dict "resourceFieldRef" (dict "resource" "requests.cpu"))) }}
{{- end }}
{{- $settings := dict "configMapRef" (dict "name" (include "rewardstack.service" (list .root "settings"))) }}
{{- include "rewardstack.environment" (merge (dict "variables" $variables "entries" $entries "sources" (list $settings)) .) }}
{{- end }}

{{/* Their mounts and volumes. */}}
{{- define "rewardstack.scoring-mounts" -}}
{{- $mounts := list (dict "name" "tmp" "mountPath" "/tmp") }}
{{- if include "rewardstack.scoring-keys" . | fromJsonArray }}{{ $mounts = append $mounts (dict "name" "keys" "mountPath" "/run/secrets/rewardstack" "readOnly" true) }}{{ end }}
{{- if .root.Values.files.source }}{{ $mounts = append $mounts (dict "name" "files" "mountPath" "/srv/files" "readOnly" true) }}{{ end }}
{{- if include "rewardstack.routes" .root }}{{ $mounts = append $mounts (dict "name" "judges" "mountPath" "/srv/judges" "readOnly" true) }}{{ end }}
{{- include "rewardstack.mounts" (merge (dict "mounts" $mounts) .) }}
{{- end }}

{{- define "rewardstack.scoring-volumes" -}}
{{- $volumes := list (dict "name" "tmp" "emptyDir" dict) }}
{{- with include "rewardstack.scoring-keys" . | fromJsonArray }}
{{- $volumes = append $volumes (include "rewardstack.keys-volume" (dict "root" $.root "keys" . "mode" 288) | fromJson) }}
{{- end }}
{{- with .root.Values.files.source }}
{{- $volumes = append $volumes (merge (dict "name" "files") (ternary (dict "emptyDir" dict) . (hasKey . "image"))) }}
{{- end }}
{{- if include "rewardstack.routes" .root }}
{{- $volumes = append $volumes (dict "name" "judges" "configMap" (dict "name" (include "rewardstack.service" (list .root "routes")))) }}
{{- end }}
{{- include "rewardstack.volumes" (merge (dict "volumes" $volumes) .) }}
{{- end }}

{{/* Files of an image are copied before the program starts: not every cluster has volumes of images. */}}
{{- define "rewardstack.scoring-files" -}}
{{- with .root.Values.files.source.image }}
initContainers:
  - name: files
    image: {{ include "rewardstack.image" (list $.root .reference) }}
    imagePullPolicy: {{ .pullPolicy | default $.root.Values.imagePullPolicy }}
    command: [cp, -R, "{{ trimSuffix "/" (required "files.source.image.path: the folder of the image that has the files" .path) }}/.", /srv/files]
    {{- include "rewardstack.container-security" $ | nindent 4 }}
    volumeMounts:
      - {name: files, mountPath: /srv/files}
{{- end }}
{{- end }}
