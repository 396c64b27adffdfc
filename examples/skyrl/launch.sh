# shellcheck shell=bash
# Sourced by the four scripts: launch NAME GPUS ENTRYPOINT KEY=VALUE ..., where ENTRYPOINT is a file or a module.
#
# It trains with the interpreter PYTHON, or with that of the checkout SKYRL_HOME, which uv makes, or with python3. Where
# something is missing it says what, shows the configuration, and the script ends with status 1.
HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd -P)
TREE=$(cd "$HERE/../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=hyperparameters.sh
. "$HERE/hyperparameters.sh"
# A run ends when more than a tenth of a process's last 1,000 samples failed; 1 never ends it.
export REWARDSTACK_MAX_FAILURE_RATE="${REWARDSTACK_MAX_FAILURE_RATE:-0.1}"
export REWARD_MODEL REWARD_NUM_ENGINES PYTHONPATH="${SKYRL_HOME:+$SKYRL_HOME:}${PYTHONPATH:-}"

RUN=("${PYTHON:-python3}")
if [ -z "${PYTHON:-}" ] && [ -n "${SKYRL_HOME:-}" ] && command -v uv >/dev/null; then
  RUN=(uv run --project "$SKYRL_HOME" --isolated --extra fsdp --with "rewardstack-verifier @ file://$TREE/verifier"
    --with "rewardstack @ file://$TREE/client" --with "rewardstack-cli[data] @ file://$TREE/cli" python)
fi

gpus_here() {
  { command -v nvidia-smi >/dev/null && nvidia-smi --list-gpus 2>/dev/null; } | grep -c '^GPU' || true
}

# A line for each thing that is missing.
missing() {
  local gpus=$1 entrypoint=$2 argument file module checkout=examples/train/async/main_async.py
  shift 2
  [ "$(gpus_here)" -ge "$gpus" ] || echo "  GPUs: $gpus; there are $(gpus_here)"
  for module in skyrl rewardstack; do
    "${RUN[@]}" -c "from importlib.util import find_spec; exit(not find_spec('$module'))" ||
      echo "  $module in ${RUN[0]}; README.md says how it is installed"
  done
  "${RUN[@]}" -c 'import sys; exit(sys.version_info < (3, 12))' || echo "  Python 3.12, on which SkyRL runs, in ${RUN[0]}"
  [[ $entrypoint != *async* || -f ${SKYRL_HOME:-.}/$checkout ]] ||
    echo "  SKYRL_HOME, a checkout of SkyRL with $checkout, which is not in its package"
  for argument in "$@"; do
    [[ $argument == data.train_data=* ]] || continue
    file=${argument#*\'}
    file=${file%%\'*}
    [ -f "$file" ] || echo "  the data $file; README.md says which script writes it"
  done
}

launch() {
  local name=$1 gpus=$2 entrypoint=$3 lacks module=(-m)
  shift 3
  local arguments=("${HYPERPARAMETERS[@]}" trainer.run_name="$name" trainer.ckpt_path="$CKPT_DIR/$name" "$@")
  lacks=$(missing "$gpus" "$entrypoint" "${arguments[@]}")
  if [ -n "$lacks" ]; then
    printf '%s needs, beside what is here:\n%s\nits configuration:\n' "$name" "$lacks"
    "${RUN[@]}" "$HERE/show_configuration.py" "${arguments[@]}"
    return 1
  fi
  [[ $entrypoint != *.py ]] || module=()
  mkdir -p "$LOG_DIR"
  "${RUN[@]}" "${module[@]}" "$entrypoint" "${arguments[@]}" 2>&1 | tee -a "$LOG_DIR/$name.log"
}
