#!/bin/sh
# Serve embeddings with Text Embeddings Inference in a container named qwen3-embedding-server:
#
#   MODEL_ID=Qwen/Qwen3-Embedding-8B PORT=8080 ./run_tei_docker.sh
#
# Environment: MODEL_ID (a folder or a name on the model hub), PORT, HOST, HF_TOKEN, DTYPE, MAX_BATCH_TOKENS,
# MAX_CLIENT_BATCH_SIZE, EMBEDDING_SERVER_API_KEY, CUDA_VISIBLE_DEVICES (its first GPU is used), TEI_CACHE (folder for
# models), TEI_IMAGE. Arguments go to TEI as they are; --dry-run only prints the command. Prints the address to export
# once the server answers; docker rm -f qwen3-embedding-server ends it.
set -eu

name=qwen3-embedding-server
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=tei_container.sh
. "$root/services/embedding/tei_container.sh"

# With a key, a script starts the server and reads the key from a file, so that neither a command line nor `docker inspect`
# shows it.
key=${EMBEDDING_SERVER_API_KEY:-}
if [ -n "$key" ]; then set -- /with_keys.sh API_KEY=/run/secrets/API_KEY text-embeddings-router "$@"; fi
set -- "$image" "$@"
if [ -n "$key" ]; then
    set -- --entrypoint sh --volume "$root/helm/rewardstack/files/models/with_keys.sh:/with_keys.sh:ro" \
        --volume "$secrets/$name:/run/secrets:ro" "$@"
fi
if [ -n "$folder" ]; then set -- --volume "$folder:/model:ro" "$@"; fi
if [ -n "$gpu" ]; then set -- --gpus "device=$gpu" "$@"; fi
if [ -n "${HF_TOKEN:-}" ]; then set -- --volume "$cache/home:/run/huggingface:ro" --env HF_HOME=/run/huggingface "$@"; fi
# <launcher embedding> written by `make settings`
: "${DRAIN_TIMEOUT:=$(from_dotenv DRAIN_TIMEOUT)}"
set -- --stop-timeout "$((DRAIN_TIMEOUT + 30))" "$@"
# </launcher>
set -- --publish "$HOST:$PORT:80" --volume "$cache/models:/data" "$@"

if [ -n "$dry" ]; then
    show docker run --detach --name "$name" --restart unless-stopped "$@"
    exit 0
fi
require_docker run_tei_python.py
if [ -n "$key" ]; then keep_secret API_KEY "$key"; fi
mkdir -p "$cache/models"
# The token is in a file, so that neither a command line nor `docker inspect` shows it.
if [ -n "${HF_TOKEN:-}" ]; then (umask 077 && mkdir -p "$cache/home" && printf %s "$HF_TOKEN" >"$cache/home/token"); fi
echo "==> starting $MODEL_ID with $image"
run_detached "the embedding server" "$@"
announce EMBEDDING_SERVER "$key"
