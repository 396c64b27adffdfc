# Sourced by the jobs of this folder: sets up the job's folder, its cleanup, and its servers.
# shellcheck shell=sh
set -eu
# shellcheck disable=SC2034 # used by the training job
trainers_umask=$(umask)
umask 077
# shellcheck source=/dev/null
. "$REWARDSTACK_ROOT/apptainer/slurm/site.conf"
# shellcheck source-path=SCRIPTDIR source=leftovers.sh
. "$REWARDSTACK_ROOT/apptainer/slurm/leftovers.sh"

# Folder of this run on shared storage; a link with the job's number leads to its last run.
job=$JOBS_DIR/$this_run
link=$JOBS_DIR/$SLURM_JOB_ID
started=''
steps=''

end() {
    trap '' TERM INT
    for each in $started; do
        kill "$each" 2>/dev/null || true
    done
    # A terminated srun would kill its tasks immediately. If another run has started, the steps belong to that one.
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
# Slurm may send the signal twice; ignore the second one, which would interrupt `end`.
trap 'trap "" TERM INT; exit 143' TERM INT
mkdir -p "$job"
ln -s "$this_run" "$JOBS_DIR/.$this_run"
mv -fT "$JOBS_DIR/.$this_run" "$link"
for each in "$JOBS_DIR" "${JUDGE_REPLICAS_DIR:-$JOBS_DIR/judges}" "${EMBEDDING_REPLICAS_DIR:-$JOBS_DIR/embeddings}"; do
    clear_shared "$each"
done
for each in "$JOBS_DIR"/[0-9]*; do
    # A link is created after its target.
    if [ -L "$each" ] && [ ! -e "$each" ] && is_own "$each"; then rm -f "$each" || true; fi
done

# make_key FOLDER: create a key for its servers if there is none. Jobs that share the folder use the same key, provided that
# no other user can write or read it.
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

# The stack may start before the replicas whose folders it watches.
for each in "${JUDGE_REPLICAS_DIR:-}" "${EMBEDDING_REPLICAS_DIR:-}"; do
    [ -z "$each" ] || make_key "$each"
done

# start COMMAND...: run a command in the background until the job ends.
start() {
    "$@" &
    started="$started $!"
}

# step OPTIONS... COMMAND...: the same on nodes of the job, with srun.
step() {
    srun "$@" &
    steps="$steps $!"
}
