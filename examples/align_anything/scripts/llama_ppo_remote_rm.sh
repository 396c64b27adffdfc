#!/usr/bin/env bash
# Trains a Llama by PPO with Align-Anything on the rewards of a reward server:
#
#     bash llama_ppo_remote_rm.sh
#     REMOTE_RM_URL=http://rewards:6000/get_reward bash llama_ppo_remote_rm.sh
#
# Without REMOTE_RM_URL it starts a server for the training, with the answers of TRAIN_DATASETS, and stops it afterwards.
# Every variable below may be set beforehand. Where something is missing, or with SHOW=1, it only shows what would run.

set -euo pipefail

SCRIPTS=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
EXAMPLE=$(dirname "$SCRIPTS")

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
WANDB_API_KEY="${WANDB_API_KEY:-}"
[[ -n "$WANDB_API_KEY" ]] || export WANDB_MODE="${WANDB_MODE:-offline}"

missing=()
nvidia-smi -L > /dev/null 2>&1 || missing+=("GPUs: with 8B parameters, 8 of 80 GB (nvidia-smi finds none)")
command -v deepspeed > /dev/null || missing+=("DeepSpeed: the command deepspeed")
python -c "import align_anything" 2> /dev/null || missing+=("Align-Anything, in the Python that is 'python' here")
python -c "import rewardstack.remote_rm_client" 2> /dev/null || missing+=("rewardstack's client, with its extra cli")
[[ -n "${REMOTE_RM_URL:-}" ]] || python -c "import rewardstack_rules" 2> /dev/null ||
    missing+=("rewardstack's reward server (services/rules), or REMOTE_RM_URL of one that runs")

shown=("${missing[@]}")
[[ -z "${SHOW:-}" ]] || shown+=("SHOW unset")
if [[ -z "${REMOTE_RM_URL:-}" && ${#shown[@]} -eq 0 ]]; then
    # shellcheck source=../example_start_remote_rm.sh
    OUTPUT_DIR="$OUTPUT_DIR" DATASET_PATH="$TRAIN_DATASETS" source "$EXAMPLE/example_start_remote_rm.sh"
    trap 'kill "$REWARD_SERVER_PID"; wait "$REWARD_SERVER_PID" || true' EXIT
fi

training=(
    deepspeed
    --master_port "$MASTER_PORT"
    --module align_anything.trainers.text_to_text.ppo_remote_rm
    --actor_model_name_or_path "$ACTOR_MODEL_NAME_OR_PATH"
    --reward_critic_model_name_or_path "$CRITIC_MODEL_NAME_OR_PATH"
    --remote_rm_url "${REMOTE_RM_URL:-http://127.0.0.1:${REWARD_PORT:-6000}/get_reward}"
    --remote_rm_timeout "$REMOTE_RM_TIMEOUT"
    --remote_rm_retry_times "$REMOTE_RM_RETRY_TIMES"
    --train_datasets "$TRAIN_DATASETS"
    --train_template "$TRAIN_TEMPLATE"
    --train_split "$TRAIN_SPLIT"
    --ptx_datasets "$PTX_DATASETS"
    --ptx_template "$PTX_TEMPLATE"
    --ptx_split "$PTX_SPLIT"
    --output_dir "$OUTPUT_DIR"
)

if [[ ${#shown[@]} -gt 0 ]]; then
    echo "Nothing was trained. It needs:"
    printf -- '- %s\n' "${shown[@]}"
    echo "Its rewards: ${REMOTE_RM_URL:-a server of its own, ${REWARD_TYPE:-math_verifier} with the answers of $TRAIN_DATASETS}"
    echo "It would run:"
    printf '%q' "${training[0]}"
    printf ' %q' "${training[@]:1:4}"
    printf ' \\\n  %q %q' "${training[@]:5}"
    echo
    [[ ${#missing[@]} -eq 0 ]] && exit 0
    exit 1
fi

mkdir -p "$OUTPUT_DIR"
"${training[@]}"
