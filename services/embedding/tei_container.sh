# Shared by run_tei_docker.sh and run_tei_apptainer.sh: the image, the model and the flags. They set -eu and $root before
# sourcing this.
# shellcheck shell=sh disable=SC2034,SC2154

# shellcheck source-path=SCRIPTDIR source=../models/container.sh
. "$root/services/models/container.sh"

# Print the prefix of the image's tag for the GPU found.
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

find_gpu

# TEI_IMAGE of the environment unchanged, else that of .env with the prefix for the GPU found.
image=${TEI_IMAGE:-}
if [ -z "$image" ]; then
    known=$(from_dotenv TEI_IMAGE)
    prefix=$(tag_prefix)
    image=${known%:*}:$prefix${known##*:}
fi

PORT=${PORT:-8080}
HOST=${HOST:-0.0.0.0}
cache=${TEI_CACHE:-$HOME/.cache/rewardstack/tei}
if [ -n "$gpu" ]; then
    MODEL_ID=${MODEL_ID:-$(from_dotenv EMBEDDING_GPU_MODEL)}
    DTYPE=${DTYPE:-float16}
else
    MODEL_ID=${MODEL_ID:-$(from_dotenv EMBEDDING_CPU_MODEL)}
    DTYPE=${DTYPE:-float32}
fi

dry=
if [ "${1:-}" = --dry-run ]; then
    dry=yes
    shift
fi

# These flags come first; the user's come last and take precedence.
set -- --dtype "$DTYPE" --max-batch-tokens "${MAX_BATCH_TOKENS:-16384}" \
    --max-client-batch-size "${MAX_CLIENT_BATCH_SIZE:-32}" "$@"
if [ -d "$MODEL_ID" ]; then
    set -- --model-id /model --served-model-name "$MODEL_ID" "$@"
    folder=$(cd "$MODEL_ID" && pwd)
else
    set -- --model-id "$MODEL_ID" "$@"
    folder=
fi
