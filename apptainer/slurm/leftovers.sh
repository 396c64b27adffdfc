# Find and remove what killed runs left on shared storage and nodes, by the name of the run.
# shellcheck shell=sh

# The restart count matters: a requeued job keeps its number, and a node may still have its previous run.
this_run=${SLURM_CLUSTER_NAME:-cluster}.${SLURM_JOB_ID:-0}.${SLURM_RESTART_COUNT:-0}

# is_over JOB[.RESTART] LIVE: whether the run is neither this one nor one of a live job.
is_over() {
    if [ "${1%%.*}" = "$SLURM_JOB_ID" ]; then
        [ "$1" != "${1%%.*}" ] && [ "$1" != "${this_run#"${SLURM_CLUSTER_NAME:-cluster}".}" ]
    else
        ! echo "$2" | grep -qx "${1%%.*}"
    fi
}

# live_jobs: print the numbers of the user's jobs; fail if Slurm does not answer or this job is missing.
live_jobs() {
    live=$(squeue --noheader --me --array --format=%A) && echo "$live" | grep -x "[0-9]*" | grep -qx "$SLURM_JOB_ID" &&
        echo "$live"
}

is_own() {
    [ -n "$(find "$1" -maxdepth 0 -user "$(id -u)" 2>/dev/null)" ]
}

# clear_shared FOLDER: remove the user's files in it that belong to runs that are over.
clear_shared() {
    # List the files before querying Slurm, so that a job that starts in between does not count as over.
    set -- "$1"/*"${this_run%.*.*}".[0-9]*.[0-9]* "$1"/.*"${this_run%.*.*}".[0-9]*.[0-9]*
    live=$(live_jobs) || return 0
    for each in "$@"; do
        found=$(echo "${each##*/}" | sed -n "s/^.*${this_run%.*.*}\.\([0-9]*\.[0-9]*\).*/\1/p")
        if [ -n "$found" ] && is_own "$each" && is_over "$found" "$live"; then rm -rf "$each" || true; fi
    done
}

# remove_run RUN: stop the stack in a folder, by force after 20 seconds, and remove the folder.
remove_run() {
    leader=$(cat "$1/supervisord.pid" 2>/dev/null || true)
    timeout --signal=KILL 20 "$REWARDSTACK_ROOT/apptainer/stack.sh" down --run "$1" || true
    # The process id may have been reused.
    if [ -n "$leader" ] && grep -qF "/${1##*/}/supervisord.conf" "/proc/$leader/cmdline" 2>/dev/null; then
        pkill -KILL --session "$leader" || true
    fi
    rm -rf "$1" || true
}

# clear_node FOLDER: do the same for run folders and their stacks; a folder whose stack was stopped keeps its queue.
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
            echo "==> removing $each, left by a job that has ended"
            remove_run "$each"
        fi
    done
}
