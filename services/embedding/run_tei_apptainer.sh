#!/bin/sh
# Serve embeddings with Text Embeddings Inference under Apptainer, in the foreground:
#
#   MODEL_ID=Qwen/Qwen3-Embedding-8B PORT=8080 ./run_tei_apptainer.sh
#
# Environment: MODEL_ID (a folder or a name on the model hub), PORT, HOST, HF_TOKEN, DTYPE, MAX_BATCH_TOKENS,
# MAX_CLIENT_BATCH_SIZE, EMBEDDING_SERVER_API_KEY, CUDA_VISIBLE_DEVICES (its first GPU is used), TEI_CACHE (folder for
# models and image files, best on shared storage), TEI_IMAGE. Arguments go to TEI as they are; --dry-run only prints the
# command.
set -eu

root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=tei_container.sh
. "$root/services/embedding/tei_container.sh"

# pass NAME VALUE: set a variable in the container without showing its value on a command line.
pass() {
    export "APPTAINERENV_$1=$2" "SINGULARITYENV_$1=$2"
}

runtime=apptainer
command -v apptainer >/dev/null || ! command -v singularity >/dev/null || runtime=singularity
sif=$cache/$(printf %s "$image" | tr '/:' '__').sif

set -- "$sif" --hostname "$HOST" --port "$PORT" "$@"
if [ -n "$folder" ]; then set -- --bind "$folder:/model:ro" "$@"; fi
if [ -n "$gpu" ]; then
    pass CUDA_VISIBLE_DEVICES "$gpu"
    set -- --nv "$@"
fi
if [ -n "${EMBEDDING_SERVER_API_KEY:-}" ]; then pass API_KEY "$EMBEDDING_SERVER_API_KEY"; fi
if [ -n "${HF_TOKEN:-}" ]; then pass HF_TOKEN "$HF_TOKEN"; fi
# Keep the user's home and environment out of the container.
set -- "$runtime" run --cleanenv --no-home --writable-tmpfs --bind "$cache/models:/data" "$@"

if [ -n "$dry" ]; then
    show "$@"
    exit 0
fi
command -v "$runtime" >/dev/null || fail "apptainer is not installed" "load its module, or use run_tei_python.py"
mkdir -p "$cache/models"
if [ ! -f "$sif" ]; then
    echo "==> fetching $image into $sif"
    # Use a temporary name until it is complete: several nodes may share the folder.
    "$runtime" pull "$sif.$$" "docker://$image" || fail "$runtime pull failed" "see its output above"
    mv "$sif.$$" "$sif"
fi
echo "==> starting $MODEL_ID with $image; once it says Ready, in the shell of your trainer:"
announce EMBEDDING_SERVER "${EMBEDDING_SERVER_API_KEY:-}"
echo
exec "$@"
