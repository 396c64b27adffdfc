#!/bin/sh
# Serve an LLM judge with vLLM in a container named vllm-server: MODEL_ID=Qwen/Qwen3-32B PORT=8000 ./run_vllm_docker.sh
#
# Environment: MODEL_ID (a folder or a name on the model hub), PORT, HOST, HF_TOKEN, DTYPE, MAX_MODEL_LEN,
# GPU_MEMORY_UTILIZATION, TENSOR_PARALLEL_SIZE, LLM_JUDGE_SERVER_API_KEY. Arguments go to vLLM as they are. Images and
# time limits are those of .env. Prints the address to export once the judge answers; docker rm -f vllm-server ends it.
set -eu

name=vllm-server
root=$(cd "$(dirname "$0")/../.." && pwd)

# shellcheck source-path=SCRIPTDIR source=../models/container.sh
. "$root/services/models/container.sh"

has_gpu() {
    command -v nvidia-smi >/dev/null && nvidia-smi --list-gpus 2>/dev/null | grep -q GPU
}

command -v docker >/dev/null || fail "docker is not installed" "install it, or use run_vllm_server.py"
docker info >/dev/null 2>&1 || fail "the Docker engine does not answer" "start it, or use run_vllm_server.py"

PORT=${PORT:-8000}
HOST=${HOST:-0.0.0.0}
cache=${HF_HOME:-$HOME/.cache/huggingface}
mkdir -p "$cache" "$HOME/.cache/vllm"

# The flags that come first; those of the user come after them and win.
set -- --port 8000 --generation-config vllm --enable-prefix-caching --enable-prompt-tokens-details \
    --enable-request-id-headers --default-chat-template-kwargs '{"enable_thinking": false}' "$@"
if has_gpu; then
    image=${VLLM_IMAGE:-$(from_dotenv VLLM_IMAGE)}
    MODEL_ID=${MODEL_ID:-Qwen/Qwen3-32B}
    set -- --gpu-memory-utilization "${GPU_MEMORY_UTILIZATION:-0.9}" \
        --tensor-parallel-size "${TENSOR_PARALLEL_SIZE:-1}" \
        --dtype "${DTYPE:-float16}" --max-model-len "${MAX_MODEL_LEN:-32768}" "$@"
else
    image=${VLLM_CPU_IMAGE:-$(from_dotenv VLLM_CPU_IMAGE)}
    MODEL_ID=${MODEL_ID:-Qwen/Qwen3-0.6B}
    set -- --dtype "${DTYPE:-auto}" --max-model-len "${MAX_MODEL_LEN:-auto}" "$@"
fi

# The image's entry point is `vllm serve`: its arguments begin with the model.
if [ -d "$MODEL_ID" ]; then
    set -- --volume "$(cd "$MODEL_ID" && pwd):/model:ro" "$image" /model --served-model-name "$MODEL_ID" "$@"
else
    set -- "$image" "$MODEL_ID" "$@"
fi
if has_gpu; then
    set -- --gpus all "$@"
else
    # vLLM binds its threads to processors, which Docker's default profile forbids.
    set -- --security-opt seccomp=unconfined --cap-add SYS_NICE \
        --env "VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-$(from_dotenv VLLM_CPU_KVCACHE_SPACE)}" "$@"
fi

# Secrets are named here and taken from the environment, so that no command line holds them.
VLLM_API_KEY=${LLM_JUDGE_SERVER_API_KEY:-}
export VLLM_API_KEY
if [ -n "$VLLM_API_KEY" ]; then set -- --env VLLM_API_KEY "$@"; fi
if [ -n "${HF_TOKEN:-}" ]; then set -- --env HF_TOKEN "$@"; fi

docker rm --force "$name" >/dev/null 2>&1 || true
echo "==> starting $MODEL_ID with $image"
docker run --detach --name "$name" --restart unless-stopped --shm-size 8g --publish "$HOST:$PORT:8000" \
    --volume "$cache:/root/.cache/huggingface" --volume "$HOME/.cache/vllm:/root/.cache/vllm" \
    --env VLLM_NO_USAGE_STATS=1 "$@" >/dev/null || fail "docker run failed" "see what it says above"

echo "==> waiting until the judge answers (docker logs -f $name)"
left=${MODEL_UP_TIMEOUT:-$(from_dotenv MODEL_UP_TIMEOUT)}
until healthy; do
    restarts=$(docker inspect --format '{{.RestartCount}}' "$name")
    if [ "$restarts" -gt 0 ] || [ "$left" -le 0 ]; then
        docker logs --tail 20 "$name" >&2
        # A container that is just being started again would outlive a mere stop.
        docker update --restart no "$name" >/dev/null
        docker stop "$name" >/dev/null
        fail "the judge did not start; the last lines of its log stand above" "docker logs $name"
    fi
    sleep 2
    left=$((left - 2))
done

address=$(hostname -I 2>/dev/null | cut -d ' ' -f 1)
echo "The judge is up. In the shell of your trainer:"
echo
echo "  export LLM_JUDGE_SERVER_URL=http://localhost:$PORT"
if [ "$HOST" = 0.0.0.0 ]; then
    echo
    echo "On other nodes:"
    echo
    echo "  export LLM_JUDGE_SERVER_URL=http://${address:-$(hostname)}:$PORT"
fi
if [ -n "$VLLM_API_KEY" ]; then
    echo "  export LLM_JUDGE_SERVER_API_KEY=...    # as it is set here"
elif [ "$HOST" = 0.0.0.0 ]; then
    echo
    echo "warning: LLM_JUDGE_SERVER_API_KEY is empty: whoever reaches this machine may use the judge"
fi
