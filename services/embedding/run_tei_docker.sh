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

# Puts the token where the container reads it: in no command line, and not in what `docker inspect` shows.
write_token() {
    (
        umask 077
        mkdir -p "$cache/home"
        printf %s "$HF_TOKEN" >"$cache/home/token"
    )
}

dry=
if [ "${1:-}" = --dry-run ]; then
    dry=yes
    shift
else
    command -v docker >/dev/null || fail "docker is not installed" "install it, or use run_tei_python.py"
    docker info >/dev/null 2>&1 || fail "the Docker engine does not answer" "start it, or use run_tei_python.py"
fi

find_gpu
set_defaults
find_image

# The flags that come first; those of the user come after them and win.
set -- --dtype "$DTYPE" --max-batch-tokens "$MAX_BATCH_TOKENS" --max-client-batch-size "$MAX_CLIENT_BATCH_SIZE" "$@"
if [ -d "$MODEL_ID" ]; then
    set -- --volume "$(cd "$MODEL_ID" && pwd):/model:ro" "$image" --model-id /model --served-model-name "$MODEL_ID" "$@"
else
    set -- "$image" --model-id "$MODEL_ID" "$@"
fi
if [ -n "$gpu" ]; then set -- --gpus "device=$gpu" "$@"; fi
# The key is named here and taken from the environment, so that no command line holds it.
if [ -n "${EMBEDDING_SERVER_API_KEY:-}" ]; then
    API_KEY=$EMBEDDING_SERVER_API_KEY
    export API_KEY
    set -- --env API_KEY "$@"
fi
if [ -n "${HF_TOKEN:-}" ]; then set -- --volume "$cache/home:/run/huggingface:ro" --env HF_HOME=/run/huggingface "$@"; fi
set -- docker run --detach --name "$name" --restart unless-stopped --publish "$HOST:$PORT:80" \
    --volume "$cache/models:/data" "$@"

if [ -n "$dry" ]; then
    show "$@"
    exit 0
fi
mkdir -p "$cache/models"
if [ -n "${HF_TOKEN:-}" ]; then write_token; fi
docker rm --force "$name" >/dev/null 2>&1 || true
echo "==> starting $MODEL_ID with $image"
"$@" >/dev/null || fail "docker run failed" "see what it says above"

echo "==> waiting until the server answers (docker logs -f $name)"
left=${MODEL_UP_TIMEOUT:-$(from_dotenv MODEL_UP_TIMEOUT)}
until healthy; do
    restarts=$(docker inspect --format '{{.RestartCount}}' "$name")
    if [ "$restarts" -gt 0 ] || [ "$left" -le 0 ]; then
        docker logs --tail 20 "$name" >&2
        docker stop "$name" >/dev/null
        fail "the server did not start; the last lines of its log stand above" "docker logs $name"
    fi
    sleep 2
    left=$((left - 2))
done
echo "The embedding server is up. In the shell of your trainer:"
announce
