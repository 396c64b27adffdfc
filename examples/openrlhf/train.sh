#!/usr/bin/env bash
# Trains a small Qwen on GSM8K by GRPO with OpenRLHF:
#
#     bash train.sh                                                         # rewards by HTTP, of a server on this machine
#     REWARD_URL=http://one:6000/get_reward,http://two:6000/get_reward bash train.sh
#     REWARD=file REWARD_TYPE=llm_judge_remote bash train.sh                # by the file: the judge is asked directly
#
# Set any variable below to override its default. If something is missing, or with SHOW=1, it only prints what it would run.

set -euo pipefail

EXAMPLE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../training.sh
source "$EXAMPLE/../training.sh"

MODEL="${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}"
DATASET="${DATASET:-${EXAMPLE%/*}/data/gsm8k/train.jsonl}" # rows of {"question", "answer"}
GPUS="${GPUS:-1}"
OUTPUT_DIR="${OUTPUT_DIR:-./output/openrlhf}"
export REWARD_TYPE="${REWARD_TYPE:-math}"
REWARD="${REWARD:-http}"
REWARD_URL="${REWARD_URL:-http://localhost:6000/get_reward}"

needs_gpus "$GPUS of 24 GB"
needs_module openrlhf "OpenRLHF with its extra vllm"
if [[ "$REWARD" == file ]]; then
    needs_module rewardstack "rewardstack's client"
    URL="$(python -c 'from rewardstack.trainers import openrlhf; print(openrlhf.__file__)')"
else
    URL="${REWARD_URL//get_reward/get_reward?reward_type=$REWARD_TYPE}"
fi

train "$REWARD_TYPE, by $URL" python -m openrlhf.cli.train_ppo_ray \
    --reward.remote_url "$URL" \
    --data.prompt_dataset "$DATASET" \
    --data.input_key question \
    --data.label_key answer \
    --data.apply_chat_template \
    --actor.model_name_or_path "$MODEL" \
    --actor.num_gpus_per_node "$GPUS" \
    --actor.adam.lr 1e-6 \
    --ref.num_gpus_per_node "$GPUS" \
    --vllm.num_engines "$GPUS" \
    --vllm.gpu_memory_utilization 0.5 \
    --vllm.enable_sleep \
    --ds.enable_sleep \
    --train.colocate_all \
    --algo.advantage.estimator group_norm \
    --rollout.n_samples_per_prompt 4 \
    --rollout.batch_size 16 \
    --train.batch_size 64 \
    --rollout.max_new_tokens 512 \
    --ckpt.output_dir "$OUTPUT_DIR"
