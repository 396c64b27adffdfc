#!/usr/bin/env bash
# Synchronous training, reward by the judge: two GPUs, one of them the judge's.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=launch.sh
. "$(dirname "${BASH_SOURCE[0]}")/launch.sh"

launch llm_judge_local $((1 + REWARD_NUM_ENGINES)) "$HERE/main_llm_judge_local.py" "${SYNC[@]}" "${LLM_JUDGE_LOCAL[@]}" "$@"
