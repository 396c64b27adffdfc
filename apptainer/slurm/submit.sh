#!/bin/sh
# Submit a job of this folder with the settings of site.conf (docs/hpc.md):
#
#   apptainer/slurm/submit.sh stack                          the whole stack on one node
#   apptainer/slurm/submit.sh judge | embedding              model servers alone, on REPLICAS nodes
#   apptainer/slurm/submit.sh train_with_rewards COMMAND...  servers on some nodes, the trainer's command on others
set -eu

REWARDSTACK_ROOT=$(cd "$(dirname "$0")/../.." && pwd)
export REWARDSTACK_ROOT
# shellcheck source=/dev/null
. "$REWARDSTACK_ROOT/apptainer/slurm/site.conf"

# from_here PATH: make it absolute, relative to the current directory.
from_here() {
    case $1 in
        /*) echo "$1" ;;
        *) echo "$PWD/$1" ;;
    esac
}

if [ -n "${JUDGE_REPLICAS_DIR:-}" ]; then
    JUDGE_REPLICAS_DIR=$(from_here "$JUDGE_REPLICAS_DIR") && export JUDGE_REPLICAS_DIR
fi
if [ -n "${EMBEDDING_REPLICAS_DIR:-}" ]; then
    EMBEDDING_REPLICAS_DIR=$(from_here "$EMBEDDING_REPLICAS_DIR") && export EMBEDDING_REPLICAS_DIR
fi

what=${1:-}
[ $# -eq 0 ] || shift
script=$what
case $what in
    stack) nodes='' ;;
    judge | embedding) script=judge nodes="--array=1-$REPLICAS" ;;
    train_with_rewards) nodes="--nodes=$SERVER_NODES" ;;
    *) sed -n 's/^#   //p' "$0" >&2 && exit 2 ;;
esac

# Set up once here; the nodes only use it.
"$REWARDSTACK_ROOT/apptainer/stack.sh" setup
(umask 077 && mkdir -p "$JOBS_DIR")
of_all="${PARTITION:+--partition=$PARTITION} ${ACCOUNT:+--account=$ACCOUNT} ${TIME:+--time=$TIME} $OPTIONS"
servers="$of_all $nodes ${SERVER_GRES:+--gres=$SERVER_GRES} ${SERVER_CPUS:+--cpus-per-task=$SERVER_CPUS} $SERVER_OPTIONS"
trainer=''
if [ "$what" = train_with_rewards ]; then
    trainer=": $of_all --nodes=$TRAINER_NODES --ntasks-per-node=$TRAINER_TASKS ${TRAINER_GRES:+--gres=$TRAINER_GRES}"
    trainer="$trainer ${TRAINER_CPUS:+--cpus-per-task=$TRAINER_CPUS} $TRAINER_OPTIONS"
fi
export SERVES="$what"
# shellcheck disable=SC2086 # options are words
job=$(sbatch --parsable --export=ALL $servers $trainer "$REWARDSTACK_ROOT/apptainer/slurm/$script.sbatch" "$@")
job=${job%%;*}
echo "job $job"
if [ "$what" = stack ]; then echo "export REWARDSTACK_ENDPOINTS=$JOBS_DIR/$job/endpoints.json"; fi
