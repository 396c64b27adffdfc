#!/usr/bin/env bash
# Trains a Llama by PPO with Align-Anything on the rewards of a reward server:
#
#     bash llama_ppo_remote_rm.sh
#     REMOTE_RM_URL=http://rewards:6000/get_reward bash llama_ppo_remote_rm.sh
#
# Without REMOTE_RM_URL it starts a server for the training, with the answers of TRAIN_DATASETS, and stops it afterwards.
# Set any variable below to override its default. If something is missing, or with SHOW=1, it only prints what it would run.

set -euo pipefail

EXAMPLE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../../training.sh
source "$EXAMPLE/../training.sh"

ACTOR_MODEL_NAME_OR_PATH="${ACTOR_MODEL_NAME_OR_PATH:-meta-llama/Llama-3.1-8B-Instruct}"
CRITIC_MODEL_NAME_OR_PATH="${CRITIC_MODEL_NAME_OR_PATH:-$ACTOR_MODEL_NAME_OR_PATH}"
TRAIN_DATASETS="${TRAIN_DATASETS:-$EXAMPLE/math_verify_dataset/example.json}" # a JSON list of {"question", "answer"}
TRAIN_TEMPLATE="${TRAIN_TEMPLATE:-Math-Zero-RL}"
TRAIN_SPLIT="${TRAIN_SPLIT:-train}"
PTX_DATASETS="${PTX_DATASETS:-tatsu-lab/alpaca}"
PTX_TEMPLATE="${PTX_TEMPLATE:-Alpaca}"
PTX_SPLIT="${PTX_SPLIT:-train}"
OUTPUT_DIR="${OUTPUT_DIR:-./output/llama_ppo_remote_rm}"
MASTER_PORT="${MASTER_PORT:-29500}"
REMOTE_RM_TIMEOUT="${REMOTE_RM_TIMEOUT:-100}"       # seconds a try
REMOTE_RM_RETRY_TIMES="${REMOTE_RM_RETRY_TIMES:-3}" # tries
REWARDS="$TRAIN_DATASETS's answers, compared by ${REWARD_TYPE:-math_verifier} in a server that is started for it"
[[ -n "${WANDB_API_KEY:-}" ]] || export WANDB_MODE="${WANDB_MODE:-offline}"

needs_gpus "8 of 80 GB for models of 8 billion parameters"
needs_command deepspeed DeepSpeed
needs_module align_anything Align-Anything
needs_module rewardstack "rewardstack's client with its extra cli"
if [[ -n "${REMOTE_RM_URL:-}" ]]; then
    REWARDS="by $REMOTE_RM_URL"
else
    needs_module rewardstack_rules "rewardstack's reward server, or REMOTE_RM_URL for one that runs"
    if ! is_shown; then
        # shellcheck source-path=SCRIPTDIR source=../example_start_remote_rm.sh
        DATASET_PATH="$TRAIN_DATASETS" source "$EXAMPLE/example_start_remote_rm.sh"
        trap 'kill "$REWARD_SERVER_PID"; wait "$REWARD_SERVER_PID" || true' EXIT
    fi
fi

train "$REWARDS" deepspeed \
    --master_port "$MASTER_PORT" \
    --module align_anything.trainers.text_to_text.ppo_remote_rm \
    --actor_model_name_or_path "$ACTOR_MODEL_NAME_OR_PATH" \
    --reward_critic_model_name_or_path "$CRITIC_MODEL_NAME_OR_PATH" \
    --remote_rm_url "${REMOTE_RM_URL:-http://127.0.0.1:${REWARD_PORT:-6000}/get_reward}" \
    --remote_rm_timeout "$REMOTE_RM_TIMEOUT" \
    --remote_rm_retry_times "$REMOTE_RM_RETRY_TIMES" \
    --train_datasets "$TRAIN_DATASETS" \
    --train_template "$TRAIN_TEMPLATE" \
    --train_split "$TRAIN_SPLIT" \
    --ptx_datasets "$PTX_DATASETS" \
    --ptx_template "$PTX_TEMPLATE" \
    --ptx_split "$PTX_SPLIT" \
    --output_dir "$OUTPUT_DIR"
