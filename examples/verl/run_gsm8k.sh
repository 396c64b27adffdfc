#!/usr/bin/env bash
# GRPO on GSM8K with verl (0.8 or later), the rewards from rewardstack. README.md says what it needs.
#
#     examples/verl/run_gsm8k.sh [any of verl's own settings, such as trainer.total_epochs=3]
#
# Variables: REWARD (rule or judge), MODEL, INPUT (of `rewardstack prepare gsm8k`), DATA (where its parquet is, or goes).
# Where something is missing, or with SHOW=1, it only shows what would run.

set -euo pipefail

EXAMPLE=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")" && pwd)
# shellcheck source-path=SCRIPTDIR source=../training.sh
source "$EXAMPLE/../training.sh"

MODEL="${MODEL:-Qwen/Qwen2.5-0.5B-Instruct}"
DATA="${DATA:-data/gsm8k}"
REWARD="${REWARD:-rule}"

settings=(
    reward.custom_reward_function.path=pkg://rewardstack.trainers.verl
    reward.custom_reward_function.name=compute_score
    data.train_files="$DATA/train.parquet" data.val_files="$DATA/test.parquet"
    data.train_batch_size=8 data.max_prompt_length=512 data.max_response_length=512
    actor_rollout_ref.model.path="$MODEL"
    actor_rollout_ref.actor.optim.lr=1e-6
    actor_rollout_ref.actor.ppo_mini_batch_size=8 actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4
    actor_rollout_ref.rollout.name=vllm actor_rollout_ref.rollout.n=4
    actor_rollout_ref.rollout.tensor_model_parallel_size=1 actor_rollout_ref.rollout.gpu_memory_utilization=0.4
    actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu=4
    algorithm.adv_estimator=grpo
    trainer.n_gpus_per_node=1 trainer.nnodes=1 trainer.total_epochs=1 trainer.test_freq=5
    "trainer.logger=[console]" trainer.project_name=rewardstack trainer.experiment_name="gsm8k-$REWARD"
)
case $REWARD in
    rule) ;;
    judge) settings+=(+reward.custom_reward_function.reward_kwargs.data_source=llm_judge_remote) ;;
    *) echo "REWARD: expected rule or judge, got $REWARD" >&2 && exit 2 ;;
esac

needs_gpus "1 of 24 GB"
needs_module verl "verl with vLLM"
needs_command rewardstack "rewardstack's client with its extras cli and data"
if ! is_shown && [[ -n "${INPUT:-}" || ! -e "$DATA/train.parquet" ]]; then
    rewardstack prepare gsm8k "${INPUT:-$EXAMPLE/../data/gsm8k}" -o "$DATA"
fi
train "by the $REWARD" python -m verl.trainer.main_ppo "${settings[@]}" "$@"
