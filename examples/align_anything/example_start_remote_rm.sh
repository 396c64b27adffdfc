#!/usr/bin/env bash
# Starts a reward server in the background for a training of Align-Anything, and waits until it answers:
#
#     source example_start_remote_rm.sh
#     ... --remote_rm_url "$REMOTE_RM_URL" ...
#     kill "$REWARD_SERVER_PID"
#
# Set any variable below before you run this to override its default.

export REWARD_PORT="${REWARD_PORT:-6000}"
export REWARD_TYPE="${REWARD_TYPE:-math_verifier}" # or example_math, example_coding, example_safety, one of your own
export OUTPUT_DIR="${OUTPUT_DIR:-./debug_logs}"
export DATASET_PATH="${DATASET_PATH:-}" # golden responses: a JSON list of {"question", "answer"}
REWARD_WORKERS="${REWARD_WORKERS:-2}"
REWARD_START_SECONDS="${REWARD_START_SECONDS:-60}"

mkdir -p "$OUTPUT_DIR"
REWARD_LOG="$OUTPUT_DIR/reward_server.log"
: > "$REWARD_LOG"

python -m rewardstack_rules.run_reward_server \
    --reward-type "$REWARD_TYPE" \
    --host "${REWARD_HOST:-127.0.0.1}" \
    --port "$REWARD_PORT" \
    --workers "$REWARD_WORKERS" \
    ${DATASET_PATH:+--dataset "$DATASET_PATH"} \
    >> "$REWARD_LOG" 2>&1 &
export REWARD_SERVER_PID=$!
export REMOTE_RM_URL="http://127.0.0.1:$REWARD_PORT/get_reward"

for ((; REWARD_START_SECONDS > 0; REWARD_START_SECONDS--)); do
    if grep -q "Running on" "$REWARD_LOG" || ! kill -0 "$REWARD_SERVER_PID" 2> /dev/null; then
        break
    fi
    sleep 1
done

if grep -q "Running on" "$REWARD_LOG"; then
    echo "Reward server $REWARD_SERVER_PID answers at $REMOTE_RM_URL"
else
    echo "The reward server did not start; its log says:" >&2
    cat "$REWARD_LOG" >&2
    kill "$REWARD_SERVER_PID" 2> /dev/null
    false
fi
