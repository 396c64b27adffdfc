#!/usr/bin/env bash
# GRPO by ms-swift with the rewards of plugin.py. Further options go to `swift rlhf`, such as --max_steps 5.
#
# Variables: REWARDS (names of plugin.py), MODEL, REWARD_SERVER_URL, and CPU=1 for a training without a GPU. Where
# something is missing, or with SHOW=1, it only shows what would run.

set -euo pipefail

EXAMPLE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../training.sh
source "$EXAMPLE/../training.sh"

MODEL="${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}"
REWARDS="${REWARDS:-gsm8k brevity}"
export REWARD_SERVER_URL="${REWARD_SERVER_URL:-http://localhost:6000}"
read -ra rewards <<< "$REWARDS"

[[ -n "${CPU:-}" ]] || needs_gpus 1
needs_command swift "ms-swift"
train "$REWARDS, by $REWARD_SERVER_URL" swift rlhf \
    --rlhf_type grpo --model "$MODEL" --use_hf true \
    --dataset "$EXAMPLE/questions.jsonl" --split_dataset_ratio 0 --load_from_cache_file false \
    --external_plugins "$EXAMPLE/plugin.py" --reward_funcs "${rewards[@]}" \
    --num_generations 4 --per_device_train_batch_size 16 --max_completion_length 256 \
    --tuner_type full --learning_rate 1e-6 --logging_steps 1 "$@"
