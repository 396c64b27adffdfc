{{/* Errors of values that the schema cannot find. */}}
{{- define "rewardstack.check-files" -}}
{{- with .Values.files }}
{{- if and (or .functions .routes .dataset) (not .source) }}
{{- fail "files.source: name the volume that the files are in, e.g. {configMap: {name: rewards}}" }}
{{- end }}
{{- if gt (len .source) 1 }}{{ fail (printf "files.source: one volume, not %s; set the others to null" (keys .source | sortAlpha | join " and ")) }}{{ end }}
{{- end }}
{{- $chart := dict "REWARD_FUNCTIONS" (ternary "files.functions" "" (not (empty .Values.files.functions))) "DATASET_PATH" (ternary "files.dataset" "" (ne .Values.files.dataset "")) "REWARDSTACK_ROUTES" (ternary "files.routes, or judges" "" (or (ne .Values.files.routes "") (ne (include "rewardstack.routes" .) ""))) }}
{{- range $name, $value := $chart }}
{{- if and $value (hasKey $.Values.settings $name) }}{{ fail (printf "settings.%s: %s already sets it; leave one of them out" $name $value) }}{{ end }}
{{- end }}
{{- end }}

{{- define "rewardstack.check-models" -}}
{{- if and (hasKey .Values.settings "LLM_JUDGE_SERVER_URL") (include "rewardstack.default-judge" .) }}
{{- fail "settings.LLM_JUDGE_SERVER_URL: it names an external judge, so the chart's would be unused; set judges.default.enabled to false" }}
{{- end }}
{{- if and (hasKey .Values.settings "EMBEDDING_SERVER_URL") .Values.embedding.enabled }}
{{- fail "settings.EMBEDDING_SERVER_URL: it names an external server, so the chart's would be unused; set embedding.enabled to false" }}
{{- end }}
{{- if and (hasKey .Values.settings "REWARD_MODEL_SERVER_URL") .Values.rewardModel.model }}
{{- fail "settings.REWARD_MODEL_SERVER_URL: it names an external reward model, so the chart's would be unused; leave out rewardModel.model" }}
{{- end }}
{{- with (index (.Values.judges.default | default dict) "route") }}
{{- fail "judges.default.route: the default judge has no route of its own; give the judge a name" }}
{{- end }}
{{- range $service, $model := include "rewardstack.models" . | fromJson }}
{{- if gt (len $model.modelCache) 1 }}
{{- fail (printf "modelCache of %s: one volume, not %s; set the others to null" $service (keys $model.modelCache | sortAlpha | join " and ")) }}
{{- end }}
{{- $most := ternary $model.replicas $model.scaling.max (eq $model.scaling.by "none") | int }}
{{- if and (gt $most 1) (include "rewardstack.model-volume-single" (dict "values" $model)) }}
{{- fail (printf "modelCache of %s: %d replicas cannot share a claim with accessMode %s; use ReadWriteMany, or one replica" $service $most $model.modelCache.claim.accessMode) }}
{{- end }}
{{- end }}
{{- end }}

{{- define "rewardstack.check-redis" -}}
{{- $keys := include "rewardstack.keys" . | fromJsonArray }}
{{- range $redis := list "cache" "queue" }}
{{- if and (index $.Values $redis).enabled (has (printf "reward_%s_url" $redis) $keys) }}
{{- fail (printf "%s.enabled: keys names an external Redis (reward_%s_url); set it to false, or leave that key out" $redis $redis) }}
{{- end }}
{{- end }}
{{- if not (or .Values.queue.enabled (has "reward_queue_url" $keys) (eq (int .Values.worker.replicas) 0)) }}
{{- fail "queue.enabled: workers need a queue; name an external one (reward_queue_url of keys), or set worker.replicas to 0" }}
{{- end }}
{{- end }}

{{- define "rewardstack.check-keys" -}}
{{- with .Values.keys }}
{{- if ne (empty .existingSecret) (empty .names) }}
{{- fail "keys.names: these are the keys in keys.existingSecret; set both, or keys.values" }}
{{- end }}
{{- if and .existingSecret .values }}
{{- fail "keys.values: the chart creates a Secret from them; leave out these, or keys.existingSecret" }}
{{- end }}
{{- $asked := list "reward_server_api_keys" }}
{{- if or (include "rewardstack.default-judge" $) $.Values.rewardModel.model }}{{ $asked = append $asked "llm_judge_server_api_key" }}{{ end }}
{{- if $.Values.embedding.enabled }}{{ $asked = append $asked "embedding_server_api_key" }}{{ end }}
{{- if include "rewardstack.has-sandbox" $ }}{{ $asked = append $asked "code_sandbox_api_key" }}{{ end }}
{{- range $name, $value := pick .values "reward_server_api_keys" "llm_judge_server_api_key" "embedding_server_api_key" "code_sandbox_api_key" }}
{{- range ternary (splitList "," $value) (list) (and (has $name $asked) (ne $value "")) }}
{{- if lt (len (trim .)) 16 }}{{ fail (printf "keys.values.%s: a key has fewer than 16 characters; generate one: openssl rand -hex 32" $name) }}{{ end }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* Kubernetes does not allow changes of a StatefulSet's claim, and its own error names no remedy. */}}
{{- define "rewardstack.check-queue-claim" -}}
{{- $name := include "rewardstack.service" (list . "queue") }}
{{- $size := .Values.queue.storage.size }}
{{- with lookup "apps/v1" "StatefulSet" .Release.Namespace $name }}
{{- $present := (index .spec.volumeClaimTemplates 0).spec.resources.requests.storage }}
{{- if ne (include "rewardstack.bytes" $present) (include "rewardstack.bytes" $size) }}
{{- $patch := printf `{"spec":{"resources":{"requests":{"storage":"%s"}}}}` $size }}
{{- fail (printf "queue.storage.size: the claim has %s, and Kubernetes does not let an upgrade change it. Enlarge it, and remove the StatefulSet without its pod; then upgrade:\n  kubectl -n %s patch pvc data-%s-0 -p '%s'\n  kubectl -n %s delete statefulset %s --cascade=orphan" $present $.Release.Namespace $name $patch $.Release.Namespace $name) }}
{{- end }}
{{- end }}
{{- end }}
