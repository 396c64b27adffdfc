#!/bin/sh
# Prepare pairs of members and non-members on the same problems of MATH-500, judged by a remote Qwen, as parquet for verl:
# NON_MEMBERS=other_solutions.jsonl ./prepare_math500_mia_data_llm_judge_remote_qwen_same_problem.sh
#
# Environment: DATASET_PATH (a file, a folder or a name on the model hub; HuggingFaceH4/MATH-500), NON_MEMBERS (the same;
# not needed where the rows of DATASET_PATH have a label), OUTPUT_DIR (data/math500_mia), LLM_JUDGE_MODEL (Qwen/Qwen3-32B),
# SEED (0). Arguments go to `rewardstack prepare math500-mia` as they are; docs/data.md has them.
set -eu

root=$(cd "$(dirname "$0")/../../.." && pwd)
rewardstack=$root/.venv/bin/rewardstack
if [ ! -x "$rewardstack" ]; then
    rewardstack=rewardstack
fi
if ! command -v "$rewardstack" >/dev/null; then
    echo 'error: rewardstack is not installed; make setup, or: pip install ./verifier ./client "./cli[data]"' >&2
    exit 2
fi
if [ -n "${NON_MEMBERS:-}" ]; then
    set -- --non-members "$NON_MEMBERS" "$@"
fi
exec "$rewardstack" prepare math500-mia "${DATASET_PATH:-HuggingFaceH4/MATH-500}" \
    --output "${OUTPUT_DIR:-data/math500_mia}" --model "${LLM_JUDGE_MODEL:-Qwen/Qwen3-32B}" --seed "${SEED:-0}" "$@"
