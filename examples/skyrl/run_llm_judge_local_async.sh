#!/usr/bin/env bash
# Asynchronous training, reward by the judge: three GPUs.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=launch.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

launch llm_judge_local_async $((2 + REWARD_NUM_ENGINES)) "$HERE/main_llm_judge_local_async.py" "${ASYNC[@]}" "${LLM_JUDGE_LOCAL[@]}" "$@"
