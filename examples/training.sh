# shellcheck shell=bash
# What the launch scripts of trainers share, to be sourced: what a training needs, and its configuration where that is
# missing or where SHOW=1 asks for it.

# A run ends when more than a tenth of a process's last 1,000 samples failed; 1 never ends it.
export REWARDSTACK_MAX_FAILURE_RATE="${REWARDSTACK_MAX_FAILURE_RATE:-0.1}"

missing=()

needs_gpus() { # as many as are said
    nvidia-smi -L > /dev/null 2>&1 || missing+=("GPUs: $1 (nvidia-smi finds none)")
}

needs_command() { # a program, and whose it is
    command -v "$1" > /dev/null || missing+=("$2: the command $1")
}

needs_module() { # a module, and whose it is
    python -c "import importlib.util, sys; sys.exit(importlib.util.find_spec('$1') is None)" 2> /dev/null ||
        missing+=("$2, in the Python that is 'python' here")
}

is_shown() { # whether nothing is to be trained
    [[ -n "${SHOW:-}" || ${#missing[@]} -gt 0 ]]
}

train() { # how the rewards come, then the command, which runs or is shown
    local rewards=$1 argument
    shift
    if ! is_shown; then
        "$@"
        return
    fi
    echo "Nothing was trained."
    [[ ${#missing[@]} -eq 0 ]] || printf 'It needs %s.\n' "${missing[@]}"
    echo "Its rewards: $rewards."
    echo "It would run:"
    printf ' '
    for argument in "$@"; do
        [[ "$argument" != --* ]] || printf ' \\\n   '
        printf ' %q' "$argument"
    done
    echo
    [[ ${#missing[@]} -eq 0 ]]
}
