#!/bin/sh
# GRPO by ms-swift with the rewards of plugin.py. Further options go to `swift rlhf`, such as --max_steps 5.
set -eu
here=$(dirname "$0")
: "${REWARD_SERVER_URL:=http://localhost:6000}" "${MODEL:=Qwen/Qwen2.5-0.5B-Instruct}" "${REWARDS:=gsm8k brevity}"
export REWARD_SERVER_URL

# shellcheck disable=SC2086 # several rewards are several words
set -- swift rlhf --rlhf_type grpo --model "$MODEL" --use_hf true \
  --dataset "$here/questions.jsonl" --split_dataset_ratio 0 --load_from_cache_file false \
  --external_plugins "$here/plugin.py" --reward_funcs $REWARDS \
  --num_generations 4 --per_device_train_batch_size 16 --max_completion_length 256 \
  --tuner_type full --learning_rate 1e-6 --logging_steps 1 "$@"

gpu="import torch; raise SystemExit(not torch.cuda.is_available())"
if [ -z "${CPU:-}" ] && ! python -c "$gpu" 2>/dev/null; then
  echo "This needs a GPU, and $MODEL. It would run:"
  echo "  $*"
  exit 0
fi
exec "$@"
