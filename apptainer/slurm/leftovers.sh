# What a job has on shared storage and on nodes bears its run's name; what runs left that were killed is known by it.
# shellcheck shell=sh

# A job that is requeued keeps its number, and a node that was away may still have its run before.
this_run=${SLURM_CLUSTER_NAME:-cluster}.${SLURM_JOB_ID:-0}.${SLURM_RESTART_COUNT:-0}

# is_over JOB[.RESTART] LIVE: whether it is neither this run nor one of a job that Slurm has among those of the user.
is_over() {
    if [ "${1%%.*}" = "$SLURM_JOB_ID" ]; then
        [ "$1" != "${1%%.*}" ] && [ "$1" != "${this_run#"${SLURM_CLUSTER_NAME:-cluster}".}" ]
    else
        ! echo "$2" | grep -qx "${1%%.*}"
    fi
}

# live_jobs: their numbers, this one's among them; fails where Slurm does not answer.
live_jobs() {
    live=$(squeue --noheader --me --array --format=%A) && echo "$live" | grep -x "[0-9]*" | grep -qx "$SLURM_JOB_ID" &&
        echo "$live"
}

is_own() {
    [ -n "$(find "$1" -maxdepth 0 -user "$(id -u)" 2>/dev/null)" ]
}

# clear_shared FOLDER: of what is named by runs in there, what is one's own and of a run that is over.
clear_shared() {
    # Listed before Slurm is asked: a job that starts meanwhile is none that is gone.
    set -- "$1"/*"${this_run%.*.*}".[0-9]*.[0-9]* "$1"/.*"${this_run%.*.*}".[0-9]*.[0-9]*
    live=$(live_jobs) || return 0
    for each in "$@"; do
        found=$(echo "${each##*/}" | sed -n "s/^.*${this_run%.*.*}\.\([0-9]*\.[0-9]*\).*/\1/p")
        if [ -n "$found" ] && is_own "$each" && is_over "$found" "$live"; then rm -rf "$each" || true; fi
    done
}

# remove_run RUN: the stack in that folder is ended, however long it would take, and the folder removed.
remove_run() {
    leader=$(cat "$1/supervisord.pid" 2>/dev/null || true)
    timeout --signal=KILL 20 "$REWARDSTACK_ROOT/apptainer/stack.sh" down --run "$1" || true
    # The number may be another process's by now.
    if [ -n "$leader" ] && grep -qF "/${1##*/}/supervisord.conf" "/proc/$leader/cmdline" 2>/dev/null; then
        pkill -KILL --session "$leader" || true
    fi
    rm -rf "$1" || true
}

# clear_node FOLDER: so of the run folders in there, and what runs in them; one that was taken down keeps its queue.
clear_node() {
    set -- "$1"/rewardstack-[0-9]*.[0-9]*-* "$1/rewardstack-$(id -un)"-[0-9]*
    live=$(live_jobs) || return 0
    for each in "$@"; do
        found=${each##*/rewardstack-}
        case $found in
            "$(id -un)"-*)
                [ -e "$each/running.json" ] || continue
                found=${found#"$(id -un)"-}
                ;;
            *) found=${found%%-*} ;;
        esac
        if [ -d "$each" ] && [ ! -L "$each" ] && is_own "$each" && is_over "$found" "$live"; then
            echo "==> clearing $each, which a job that is gone has left"
            remove_run "$each"
        fi
    done
}
