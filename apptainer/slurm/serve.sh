#!/bin/sh
# Keeps the servers of this node up until it is ended: serve.sh ENDPOINTS KEYS, the file that says where they are (or
# FOLDER/, for a file of this node in there), and the folder with their key. Settings are those of .env and the environment.
set -eu
umask 077
# shellcheck source=/dev/null
. "$REWARDSTACK_ROOT/apptainer/slurm/site.conf"
# shellcheck source-path=SCRIPTDIR source=leftovers.sh
. "$REWARDSTACK_ROOT/apptainer/slurm/leftovers.sh"

stack=$REWARDSTACK_ROOT/apptainer/stack.sh
name=rewardstack-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}-$SLURMD_NODENAME
run=${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/$name
# Names of sockets are short.
if [ ${#run} -gt 60 ]; then run=/tmp/$name; fi
up=''
endpoints=$1
case $endpoints in */) endpoints=$1$SLURMD_NODENAME.json ;; esac

# Who is asked first is told first. Slurm kills what is left soon after it asks; nothing may stay on the node then, and a
# model server that loads hears no word.
end() {
    trap '' TERM INT
    rm -f "$run/published.json" "$endpoints" || true
    if [ -n "$up" ]; then
        kill "$up" 2>/dev/null || true
        wait "$up" || true
    fi
    remove_run "$run"
    rm -f "$endpoints" || true
}
trap end EXIT
# Slurm and the job each say it; a second word would cut `end` short.
trap 'trap "" TERM INT; exit 143' TERM INT

REWARD_SERVER_API_KEYS=$(cat "$2/key")
LLM_JUDGE_SERVER_API_KEY=$(cat "${JUDGE_REPLICAS_DIR:-$2}/key")
EMBEDDING_SERVER_API_KEY=$(cat "${EMBEDDING_REPLICAS_DIR:-$2}/key")
BIND_ADDRESS=''
for _ in 1 2 3 4 5; do
    BIND_ADDRESS=$(node_address | tr -d '[]')
    [ -z "$BIND_ADDRESS" ] || break
    sleep 2
done
if [ -z "$BIND_ADDRESS" ]; then
    echo "error: node_address of apptainer/slurm/site.conf tells no address of $SLURMD_NODENAME" >&2
    exit 1
fi
# A link that somebody else has put there is no folder of this job's.
rm -rf "$run"
mkdir -m 700 "$run"
export REWARD_SERVER_API_KEYS LLM_JUDGE_SERVER_API_KEY EMBEDDING_SERVER_API_KEY BIND_ADDRESS
"$stack" up --run "$run" --free-ports --endpoints "$endpoints" &
up=$!
wait "$up"
while :; do
    sleep 5 &
    wait "$!"
    if ! kill -0 "$(cat "$run/supervisord.pid")" 2>/dev/null; then
        echo "error: the servers of $SLURMD_NODENAME have ended" >&2
        exit 1
    fi
done
