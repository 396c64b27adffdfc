#!/bin/sh
# A trainer: it scores samples where REWARDSTACK_ENDPOINTS says, and ends as it is told.
echo "trainer on $SLURMD_NODENAME"
what=$1
if [ "$what" = again ]; then
    if [ -n "${SLURM_RESTART_COUNT:-}" ]; then what="score"; else what="wait"; fi
fi
case $what in
    fail)
        .venv/bin/rewardstack score examples/samples.jsonl --output "scored-$SLURM_JOB_ID.jsonl" && exit 7
        ;;
    judges)
        .venv/bin/rewardstack score examples/judge_samples.jsonl --output "scored-$SLURM_JOB_ID.jsonl"
        url=$(sed -n 's/.*"LLM_JUDGE_SERVER_URL": "\([^"]*\)".*/\1/p' "$REWARDSTACK_ENDPOINTS")
        key=$(sed -n 's/.*"LLM_JUDGE_SERVER_API_KEY": "\([^"]*\)".*/\1/p' "$REWARDSTACK_ENDPOINTS")
        for _ in $(seq 30); do
            curl -s -H "Authorization: Bearer $key" -d '{"messages": []}' "$url/v1/chat/completions" |
                sed 's/.*"id": "\([^"]*\)".*/judged by \1\n/'
        done
        ;;
    score)
        .venv/bin/rewardstack score examples/samples.jsonl --output "scored-$SLURM_JOB_ID-$SLURM_PROCID.jsonl"
        ;;
    wait)
        trap 'echo "trainer was told to end"; exit 9' TERM
        sleep 1000 &
        wait
        ;;
esac
