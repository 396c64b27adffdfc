# What run_tei_docker.sh and run_tei_apptainer.sh share. They set -eu and $root before they read this.
# shellcheck shell=sh disable=SC2034,SC2154

# shellcheck source-path=SCRIPTDIR source=../models/container.sh
. "$root/services/models/container.sh"

# Sets $gpu: the GPU to use, which TEI takes one of; empty where there is none.
find_gpu() {
    gpu=
    command -v nvidia-smi >/dev/null || return 0
    visible=${CUDA_VISIBLE_DEVICES-0}
    if [ -n "$visible" ] && nvidia-smi --id="${visible%%,*}" --list-gpus 2>/dev/null | grep -q GPU; then
        gpu=${visible%%,*}
    fi
}

# Prints the prefix that the image's tag has for the GPU found.
tag_prefix() {
    if [ -z "$gpu" ]; then
        echo cpu-
        return
    fi
    capability=$(nvidia-smi --id="$gpu" --query-gpu=compute_cap --format=csv,noheader) ||
        fail "nvidia-smi does not know the GPU's compute capability" "set TEI_IMAGE to the whole name of an image"
    case $capability in
        7.5) echo turing- ;;
        8.0) echo ;;
        8.6 | 8.7) echo 86- ;;
        8.9) echo 89- ;;
        9.0) echo hopper- ;;
        10.*) echo 100- ;;
        12.*) echo 120- ;;
        *) fail "there is no image for a GPU of compute capability $capability" \
            "use run_tei_python.py, or set TEI_IMAGE to the whole name of an image" ;;
    esac
}

# Sets $image: TEI_IMAGE of the environment as it is, else that of .env with the prefix for the GPU found.
find_image() {
    image=${TEI_IMAGE:-}
    if [ -z "$image" ]; then
        known=$(from_dotenv TEI_IMAGE)
        prefix=$(tag_prefix)
        image=${known%:*}:$prefix${known##*:}
    fi
}

# Sets the variables that say what is served, and how.
set_defaults() {
    PORT=${PORT:-8080}
    HOST=${HOST:-0.0.0.0}
    MAX_BATCH_TOKENS=${MAX_BATCH_TOKENS:-16384}
    MAX_CLIENT_BATCH_SIZE=${MAX_CLIENT_BATCH_SIZE:-32}
    if [ -n "$gpu" ]; then
        MODEL_ID=${MODEL_ID:-Qwen/Qwen3-Embedding-8B}
        DTYPE=${DTYPE:-float16}
    else
        MODEL_ID=${MODEL_ID:-Qwen/Qwen3-Embedding-0.6B}
        DTYPE=${DTYPE:-float32}
    fi
    cache=${TEI_CACHE:-$HOME/.cache/rewardstack/tei}
}

# Prints a command, each argument in quotes where the shell would need them.
show() {
    line=
    for argument in "$@"; do
        case $argument in
            '' | *[!A-Za-z0-9_./:=,@-]*) argument="'$(printf %s "$argument" | sed "s/'/'\\\\''/g")'" ;;
        esac
        line="$line${line:+ }$argument"
    done
    printf '%s\n' "$line"
}

announce() {
    echo
    echo "  export EMBEDDING_SERVER_URL=http://localhost:$PORT"
    if [ "$HOST" = 0.0.0.0 ]; then
        address=$(hostname -I 2>/dev/null | cut -d ' ' -f 1)
        echo
        echo "On other nodes:"
        echo
        echo "  export EMBEDDING_SERVER_URL=http://${address:-$(hostname)}:$PORT"
        if [ -z "${EMBEDDING_SERVER_API_KEY:-}" ]; then
            echo
            echo "warning: EMBEDDING_SERVER_API_KEY is empty: whoever reaches this machine may use the server"
        fi
    fi
}
