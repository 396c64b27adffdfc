#!/bin/sh
# Run the whole stack on one node in Apptainer images, without root (docs/hpc.md):
#
#   apptainer/stack.sh build [NAME...]                      the images: rules redis gateway judge embedding; make sif
#   apptainer/stack.sh up [--run DIR] [--endpoints FILE] [--keys DIR] [--free-ports]
#   apptainer/stack.sh status | logs [SERVICE] | down [--run DIR]
#   servers=$(apptainer/stack.sh env) && eval "$servers"   the variables of a trainer
#
# Settings come from .env and the environment. --run DIR (or RUN_DIR) is the run directory, on a local disk of the node.
set -eu

unset CDPATH
root=$(cd "$(dirname "$0")/.." && pwd)
cd "$root"
python=.venv/bin/python
# Variables and packages of the user would make the stack's Python find other modules.
unset PYTHONHOME PYTHONPATH PYTHONSAFEPATH
export PYTHONNOUSERSITE=1 STACK=apptainer

fail() {
    echo "ERROR: $1 — $2" >&2
    exit 1
}

# from_here PATH: make it absolute, relative to the caller's directory.
from_here() {
    case $1 in
        /*) echo "$1" ;;
        *) echo "$here/$1" ;;
    esac
}

# RUN_DIR in .env.local or .env, but not its default: that is in the tree, which may be on shared storage.
written_run_dir() {
    sed -n "s/^[[:space:]]*RUN_DIR=[\"']\{0,1\}\([^\"'#]*[^\"'#[:space:]]\).*/\1/p" .env.local .env 2>/dev/null | grep -vx '[.]run' | head -n 1 || true
}

# A local folder: the job's own if Slurm creates one. It must be short, because names of sockets are.
default_run_dir() {
    folder=${SLURM_TMPDIR:-${TMPDIR:-/tmp}}
    if [ ${#folder} -gt 40 ]; then folder=/tmp; fi
    echo "$folder/rewardstack-$(id -un)${SLURM_JOB_ID:+-$SLURM_JOB_ID}"
}

# Remove what killed jobs of this user left on the node.
clear_leftovers() {
    if [ -n "${SLURM_JOB_ID:-}" ] && command -v squeue >/dev/null; then
        REWARDSTACK_ROOT=$root
        # shellcheck source-path=SCRIPTDIR source=slurm/leftovers.sh
        . apptainer/slurm/leftovers.sh
        clear_node "$(dirname "$RUN_DIR")"
    fi
}

any_python() {
    sh services/stack/find_python.sh any || fail "no Python >= 3.10 was found" "load its module, or set PYTHON to its path"
}

# Run a command that needs no packages with any Python.
plain() {
    found=$python
    "$found" -c '' 2>/dev/null || found=$(any_python)
    PYTHONPATH=client:services/rules exec "$found" -m services.up "$@"
}

# If Python has no pip, as on Debian without python3-venv, use the pip in the image of the reward server.
lend_pip() {
    found=$(any_python)
    if [ -e .venv/bin/pip ] || "$found" -c 'import ensurepip' 2>/dev/null; then return; fi
    image=$(PYTHONPATH=client:services/rules "$found" -m services.up sif --where rules)
    [ -f "$image" ] || fail "$found has no pip, and $image, which has one, is missing" "apptainer/stack.sh build rules"
    "$found" -m venv --without-pip .venv
    # Keep Apptainer from creating a folder in the home.
    APPTAINER_CONFIGDIR=$root/.venv/apptainer apptainer --quiet exec --cleanenv --contain --no-home --pwd / "$image" \
        tar -C /opt/pip -c . | tar -C .venv -x
    for wheel in .venv/pip-*.whl; do .venv/bin/python "$wheel/pip" --quiet install --no-index "$wheel"; done
}

setup() {
    lend_pip
    found=$python
    "$found" -c 'import pip' 2>/dev/null || found=$(sh services/stack/find_python.sh)
    "$found" -m services.stack setup
}

here=$OLDPWD
command=${1:-}
[ $# -eq 0 ] || shift
words=
while [ "$command" != build ] && [ $# -gt 0 ]; do
    case $1 in
        --run | --endpoints | --keys) [ $# -ge 2 ] || fail "$1 takes a path" "apptainer/stack.sh $command $1 PATH" ;;
    esac
    case $1 in
        --run) RUN_DIR=$(from_here "$2") && shift ;;
        --endpoints) ENDPOINTS_FILE=$(from_here "$2") && export ENDPOINTS_FILE && shift ;;
        --keys) KEYS_DIR=$(from_here "$2") && export KEYS_DIR && shift ;;
        --free-ports) FREE_PORTS=on && export FREE_PORTS ;;
        -*) fail "unknown option $1" "see the head of apptainer/stack.sh" ;;
        *)
            if [ "$command" != logs ] || [ -n "$words" ]; then
                fail "$command does not accept $1" "see the head of apptainer/stack.sh"
            fi
            words=$1
            ;;
    esac
    shift
done
RUN_DIR=${RUN_DIR:-$(written_run_dir)}
export RUN_DIR="${RUN_DIR:-$(default_run_dir)}"

case $command in
    # With the packages, because compute nodes may have no network.
    build)
        (plain sif "$@")
        setup
        ;;
    setup) setup ;;
    up | plan)
        [ "$command" = plan ] || (clear_leftovers)
        (plain preflight)
        setup
        exec "$python" -m services.up "$command"
        ;;
    logs) plain logs ${words:+--service "$words"} ;;
    down | status | env) plain "$command" ;;
    *) fail "unknown command '$command'" "apptainer/stack.sh build, up, status, logs, env or down" ;;
esac
