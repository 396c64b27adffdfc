{{/* Judges of this release by the name of their service, with all their values, as JSON. */}}
{{- define "rewardstack.judges" -}}
{{- $found := dict }}
{{- $shared := include "rewardstack.merged" (list .Values.common .Values.judge) | fromJson }}
{{- range $name, $own := .Values.judges }}
{{- $judge := merge (dict "name" $name) (include "rewardstack.merged" (list $shared $own) | fromJson) }}
{{- if $judge.enabled }}{{ $_ := set $found (ternary "judge" (printf "judge-%s" $name) (eq $name "default")) $judge }}{{ end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{/* Whether the default judge is among them; empty where it is not. */}}
{{- define "rewardstack.default-judge" -}}
{{- if hasKey (include "rewardstack.judges" . | fromJson) "judge" }}true{{ end }}
{{- end }}

{{/* The reward model's values as JSON: those of judges that concern every vLLM, and its own over them. Empty where there
is none. */}}
{{- define "rewardstack.reward-model" -}}
{{- if .Values.rewardModel.model }}
{{- $shared := omit .Values.judge "extraArgs" "gpus" "model" "replicas" "route" "scaling" }}
{{- $own := merge (dict "gpus" 1 "replicas" 1 "scaling" (dict "by" "none")) (include "rewardstack.merged" (list .Values.common $shared) | fromJson) }}
{{- include "rewardstack.merged" (list $own .Values.rewardModel) }}
{{- end }}
{{- end }}

{{/* Model servers of this release by the name of their service, each with its kind, as JSON. */}}
{{- define "rewardstack.models" -}}
{{- $found := dict }}
{{- with include "rewardstack.reward-model" . }}
{{- $_ := set $found "reward-model" (merge (dict "kind" "reward-model") (fromJson .)) }}
{{- end }}
{{- range $service, $judge := include "rewardstack.judges" . | fromJson }}
{{- $_ := set $found $service (merge (dict "kind" "judge") $judge) }}
{{- end }}
{{- if .Values.embedding.enabled }}
{{- $embedding := include "rewardstack.merged" (list .Values.common .Values.embedding) | fromJson }}
{{- $_ := set $found "embedding" (merge (dict "kind" "embedding") $embedding) }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{/* The model that a server serves: its values. */}}
{{- define "rewardstack.model" -}}
{{ .model | default (index . .device).model }}
{{- end }}

{{/* The routes of judges by name, as JSON; empty where there is none. */}}
{{- define "rewardstack.routes" -}}
{{- $table := dict }}
{{- range $service, $judge := omit (include "rewardstack.judges" . | fromJson) "judge" }}
{{- $own := dict "model" (include "rewardstack.model" $judge) }}
{{- range $field, $value := $judge.route }}
{{- if $value }}{{ $_ := set $own $field $value }}{{ end }}
{{- end }}
{{- if or (hasKey $.Values.settings "LLM_JUDGE_SERVER_URL") (not (include "rewardstack.default-judge" $)) }}
{{- /* They are not asked where the default judge is. */}}
{{- $_ := set $own "base_url" (printf "%s/judges/%s" (include "rewardstack.gateway" (list $ "judge")) $judge.name) }}
{{- if has "llm_judge_server_api_key" (include "rewardstack.keys" $ | fromJsonArray) }}
{{- $_ := set $own "api_key_env" "LLM_JUDGE_SERVER_API_KEY" }}
{{- end }}
{{- end }}
{{- $_ := set $table $judge.name $own }}
{{- end }}
{{- with $table }}{{ dict "judges" . | toPrettyJson }}{{ end }}
{{- end }}

{{/* Helpers of model servers' pods. They take the dict of the pod helpers. */}}

{{/* The folder in which a server keeps models. */}}
{{- define "rewardstack.model-folder" -}}
{{ ternary "/data" "/cache" (eq .values.kind "embedding") }}
{{- end }}

{{/* Its environment by name, as JSON. */}}
{{- define "rewardstack.model-variables" -}}
{{- $folder := include "rewardstack.model-folder" . }}
{{- $own := dict "HOME" "/tmp" "MODEL_CACHE" $folder }}
{{- if ne .values.kind "embedding" }}
{{- /* A user that the image does not know has no name. Compiled code does not belong on a volume that replicas share. */}}
{{- $own = merge $own (dict "USER" "vllm" "HF_HOME" (printf "%s/huggingface" $folder) "XDG_CACHE_HOME" "/tmp/cache") }}
{{- else }}
{{- $_ := set $own "HUGGINGFACE_HUB_CACHE" $folder }}
{{- end }}
{{- if eq .values.device "cpu" }}
{{- $own = merge $own (.description.cpu_environment | default dict) (index (include "rewardstack.defaults" .root | fromJson) .values.kind | default dict) }}
{{- end }}
{{- $own | toJson }}
{{- end }}

{{/* Entries of its environment as JSON. A pod sees all CPUs of its node, and vLLM starts a thread on each: more than the
pod may use at a time wait for each other. */}}
{{- define "rewardstack.model-entries" -}}
{{- $entries := list }}
{{- if and (ne .values.kind "embedding") (eq .values.device "cpu") (.values.resources.requests | default dict).cpu }}
{{- $entries = append $entries (dict "name" "OMP_NUM_THREADS" "valueFrom" (dict "resourceFieldRef" (dict "resource" "requests.cpu"))) }}
{{- end }}
{{- $entries | toJson }}
{{- end }}

{{/* Its keys by the variable that the server reads, as JSON. */}}
{{- define "rewardstack.model-keys" -}}
{{- $found := dict }}
{{- $there := include "rewardstack.keys" .root | fromJsonArray }}
{{- range $variable, $secret := .description.secret_variables }}
{{- if has (lower $secret) $there }}{{ $_ := set $found $variable (lower $secret) }}{{ end }}
{{- end }}
{{- $found | toJson }}
{{- end }}

{{/* Its command as JSON. */}}
{{- define "rewardstack.model-command" -}}
{{- $keys := list }}
{{- range $variable, $key := include "rewardstack.model-keys" . | fromJson }}{{ $keys = append $keys (printf "%s=/run/secrets/rewardstack/%s" $variable $key) }}{{ end }}
{{- $program := list }}
{{- $arguments := list }}
{{- range .description.command }}
{{- if or $arguments (hasPrefix "-" .) (hasPrefix "{" .) }}
{{- $arguments = append $arguments (. | replace "{model}" (include "rewardstack.model" $.values) | replace "{config}" (printf "/etc/rewardstack/vllm-%s.yaml" $.values.device)) }}
{{- else }}
{{- $program = append $program . }}
{{- end }}
{{- end }}
{{- $listens := list (ternary "--hostname" "--host" (eq .values.kind "embedding")) (ternary "::" "0.0.0.0" .root.Values.ipv6) "--port" (toString .description.port) }}
{{- $options := include "rewardstack.model-options" . | fromJsonArray }}
{{- $extra := include "rewardstack.arguments" .values.extraArgs | fromJsonArray }}
{{- concat (list "sh" "/etc/rewardstack/with_keys.sh") $keys ((index .values .values.device).program | default $program) $arguments $listens $options $extra | toJson }}
{{- end }}

{{/* The options that settings fill, as JSON. A judge's length is its model's, or less if memory does not suffice. */}}
{{- define "rewardstack.model-options" -}}
{{- $options := list }}
{{- $settings := merge (dict "DRAIN_TIMEOUT" (include "rewardstack.drain-timeout" .root) "JUDGE_TENSOR_PARALLEL_SIZE" .values.gpus "JUDGE_MAX_MODEL_LEN" "auto") (include "rewardstack.defaults" .root | fromJson).options }}
{{- range .description.options }}
{{- if and (index $settings .setting) (eq (.device | default $.values.device) $.values.device) }}
{{- $options = concat $options (list .flag (include "rewardstack.text" (index $settings .setting))) }}
{{- end }}
{{- end }}
{{- $options | toJson }}
{{- end }}

{{/* Its requests and limits: GPUs, and storage for a model that has no volume. */}}
{{- define "rewardstack.model-resources" -}}
{{- $resources := deepCopy .values.resources }}
{{- if eq .values.device "gpu" }}
{{- $_ := set $resources "limits" (merge (dict .values.gpuResource (.values.gpus | toString)) ($resources.limits | default dict)) }}
{{- end }}
{{- if not .values.modelCache }}
{{- $_ := set $resources "requests" (merge ($resources.requests | default dict) (dict "ephemeral-storage" (index .values .values.device).ephemeralStorage)) }}
{{- end }}
resources:
  {{- toYaml $resources | nindent 2 }}
{{- end }}

{{/* The source of its volume for models, as JSON. */}}
{{- define "rewardstack.model-volume" -}}
{{- $volume := .values.modelCache | default (dict "emptyDir" (dict "sizeLimit" (index .values .values.device).ephemeralStorage)) }}
{{- if hasKey $volume "claim" }}
{{- $volume = dict "persistentVolumeClaim" (dict "claimName" (include "rewardstack.service" (list .root (printf "%s-models" .name)))) }}
{{- end }}
{{- $volume | toJson }}
{{- end }}

{{/* Whether its volume can be mounted by one node or pod only; empty where it cannot. */}}
{{- define "rewardstack.model-volume-single" -}}
{{- with .values.modelCache.claim }}{{ if hasPrefix "ReadWriteOnce" .accessMode }}true{{ end }}{{ end }}
{{- end }}
