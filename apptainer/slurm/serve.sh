#!/bin/sh
# Run the servers of this node until terminated: serve.sh ENDPOINTS KEYS. ENDPOINTS is the endpoints file (or FOLDER/, for a
# file named after the node in it), KEYS the folder with their key. Settings come from .env and the environment.
set -eu
umask 077
# shellcheck source=/dev/null
. "$REWARDSTACK_ROOT/apptainer/slurm/site.conf"
# shellcheck source-path=SCRIPTDIR source=leftovers.sh
. "$REWARDSTACK_ROOT/apptainer/slurm/leftovers.sh"

stack=$REWARDSTACK_ROOT/apptainer/stack.sh
name=rewardstack-$SLURM_JOB_ID.${SLURM_RESTART_COUNT:-0}-$SLURMD_NODENAME
run=${SLURM_TMPDIR:-${TMPDIR:-/tmp}}/$name
# Socket paths must be short.
if [ ${#run} -gt 60 ]; then run=/tmp/$name; fi
up=''
endpoints=$1
case $endpoints in */) endpoints=$1$SLURMD_NODENAME.json ;; esac

# Remove the endpoints file first, so that clients stop using the servers. Slurm kills the job soon after the signal, and a
# model server that is loading ignores SIGTERM; nothing may stay on the node.
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
# Slurm and the job both send the signal; ignore the second one, which would interrupt `end`.
trap 'trap "" TERM INT; exit 143' TERM INT

BIND_ADDRESS=''
for _ in 1 2 3 4 5; do
    BIND_ADDRESS=$(node_address | tr -d '[]')
    [ -z "$BIND_ADDRESS" ] || break
    sleep 2
done
if [ -z "$BIND_ADDRESS" ]; then
    echo "error: node_address in apptainer/slurm/site.conf printed no address for $SLURMD_NODENAME" >&2
    exit 1
fi
# Another user may have put a link there.
rm -rf "$run"
mkdir -m 700 "$run"
export BIND_ADDRESS
"$stack" up --run "$run" --free-ports --endpoints "$endpoints" --keys "$2" &
up=$!
wait "$up"
while :; do
    sleep 5 &
    wait "$!"
    if ! kill -0 "$(cat "$run/supervisord.pid")" 2>/dev/null; then
        echo "error: the servers of $SLURMD_NODENAME have exited" >&2
        exit 1
    fi
done
