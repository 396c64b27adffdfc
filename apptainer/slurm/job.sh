# Read by the jobs of this folder: the job's folder, its end, and its servers.
# shellcheck shell=sh
set -eu
# shellcheck disable=SC2034 # of the training job
trainers_umask=$(umask)
umask 077
# shellcheck source=/dev/null
. "$REWARDSTACK_ROOT/apptainer/slurm/site.conf"
# shellcheck source-path=SCRIPTDIR source=leftovers.sh
. "$REWARDSTACK_ROOT/apptainer/slurm/leftovers.sh"

# On shared storage, this run's alone; by the job's number it is found, whichever run of it is the last.
job=$JOBS_DIR/$this_run
link=$JOBS_DIR/$SLURM_JOB_ID
started=''
steps=''

end() {
    trap '' TERM INT
    for each in $started; do
        kill "$each" 2>/dev/null || true
    done
    # A srun that is told to end kills its tasks at once. Where another run has begun, the steps are that one's.
    [ -z "$steps" ] || ! is_last || scancel --quiet --signal=TERM "$SLURM_JOB_ID" || true
    for each in $started $steps; do
        wait "$each" || true
    done
    ! is_last || rm -f "$link" || true
    rm -rf "$job" || true
}

is_last() {
    [ "$(readlink "$link")" = "$this_run" ]
}
trap end EXIT
# Slurm may say it twice; a second word would cut `end` short.
trap 'trap "" TERM INT; exit 143' TERM INT
mkdir -p "$job"
ln -s "$this_run" "$JOBS_DIR/.$this_run"
mv -fT "$JOBS_DIR/.$this_run" "$link"
for each in "$JOBS_DIR" "${JUDGE_REPLICAS_DIR:-$JOBS_DIR/judges}" "${EMBEDDING_REPLICAS_DIR:-$JOBS_DIR/embeddings}"; do
    clear_shared "$each"
done
for each in "$JOBS_DIR"/[0-9]*; do
    # A link is made after what it leads to.
    if [ -L "$each" ] && [ ! -e "$each" ] && is_own "$each"; then rm -f "$each" || true; fi
done

# make_key FOLDER: a key for its servers, where there is none yet; jobs that share the folder agree on one, which is
# believed where nobody else could have put it there or can read it.
make_key() {
    mkdir -p "$1"
    if [ ! -e "$1/key" ]; then
        od -An -N32 -tx1 /dev/urandom | tr -d ' \n' >"$1/key.$this_run"
        mv -n "$1/key.$this_run" "$1/key"
        rm -f "$1/key.$this_run"
    fi
    shared=$(find "$1" "$1/key" -maxdepth 0 \( ! -user "$(id -u)" -o -perm /022 \))
    if [ -n "$shared" ] || [ ! -s "$1/key" ] || [ -n "$(find "$1/key" -perm /077)" ]; then
        echo "error: others can read $1/key, or put another one there" >&2
        echo "  remedy: chmod 700 $1 && chmod 600 $1/key, where both are yours; else name another folder" >&2
        exit 1
    fi
}

# The stack may start before the replicas that it follows.
for each in "${JUDGE_REPLICAS_DIR:-}" "${EMBEDDING_REPLICAS_DIR:-}"; do
    [ -z "$each" ] || make_key "$each"
done

# start COMMAND...: one that goes on beside the job, and ends with it.
start() {
    "$@" &
    started="$started $!"
}

# step OPTIONS... COMMAND...: so, on nodes of the job as srun has them.
step() {
    srun "$@" &
    steps="$steps $!"
}
