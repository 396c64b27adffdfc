#!/bin/sh
# Serve an LLM judge with vLLM in a container named vllm-server: MODEL_ID=Qwen/Qwen3-32B PORT=8000 ./run_vllm_docker.sh
#
# Environment: MODEL_ID (a folder or a name on the model hub), PORT, HOST, HF_TOKEN, DTYPE, MAX_MODEL_LEN,
# GPU_MEMORY_UTILIZATION, TENSOR_PARALLEL_SIZE, LLM_JUDGE_SERVER_API_KEY. Arguments go to vLLM as they are. Flags are those
# of vllm-gpu.yaml or vllm-cpu.yaml; images, models and time limits are those of .env. Prints the address to export once
# the judge answers; docker rm -f vllm-server ends it.
set -eu

name=vllm-server
root=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source-path=SCRIPTDIR source=../models/container.sh
. "$root/services/models/container.sh"

require_docker run_vllm_server.py
find_gpu
PORT=${PORT:-8000}
HOST=${HOST:-0.0.0.0}
cache=${HF_HOME:-$HOME/.cache/huggingface}
mkdir -p "$cache" "$HOME/.cache/vllm"

if [ -n "$gpu" ]; then
    image=${VLLM_IMAGE:-$(from_dotenv VLLM_IMAGE)}
    MODEL_ID=${MODEL_ID:-$(from_dotenv JUDGE_GPU_MODEL)}
else
    image=${VLLM_CPU_IMAGE:-$(from_dotenv VLLM_CPU_IMAGE)}
    MODEL_ID=${MODEL_ID:-$(from_dotenv JUDGE_CPU_MODEL)}
fi

# These options come first; the user's come last and take precedence.
# <launcher options> written by `make settings`
: "${DRAIN_TIMEOUT:=$(from_dotenv DRAIN_TIMEOUT)}"
set -- ${DRAIN_TIMEOUT:+--shutdown-timeout "$DRAIN_TIMEOUT"} "$@"
set -- ${DTYPE:+--dtype "$DTYPE"} "$@"
set -- ${MAX_MODEL_LEN:+--max-model-len "$MAX_MODEL_LEN"} "$@"
: "${TENSOR_PARALLEL_SIZE:=1}"
[ -z "$gpu" ] || set -- ${TENSOR_PARALLEL_SIZE:+--tensor-parallel-size "$TENSOR_PARALLEL_SIZE"} "$@"
: "${GPU_MEMORY_UTILIZATION:=0.9}"
[ -z "$gpu" ] || set -- ${GPU_MEMORY_UTILIZATION:+--gpu-memory-utilization "$GPU_MEMORY_UTILIZATION"} "$@"
# </launcher>

# The image's entry point is `vllm serve`, so the arguments start with the model. With secrets, a script starts it.
keep_secret VLLM_API_KEY "${LLM_JUDGE_SERVER_API_KEY:-}"
keep_secret HF_TOKEN "${HF_TOKEN:-}"
secret=${LLM_JUDGE_SERVER_API_KEY:-}${HF_TOKEN:-}
set -- --config /etc/vllm.yaml "$@"
if [ -d "$MODEL_ID" ]; then set -- /model --served-model-name "$MODEL_ID" "$@"; else set -- "$MODEL_ID" "$@"; fi
if [ -n "$secret" ]; then
    set -- /with_keys.sh VLLM_API_KEY=/run/secrets/VLLM_API_KEY HF_TOKEN=/run/secrets/HF_TOKEN vllm serve "$@"
fi
set -- "$image" "$@"
if [ -n "$secret" ]; then
    set -- --entrypoint sh --volume "$root/helm/rewardstack/files/models/with_keys.sh:/with_keys.sh:ro" \
        --volume "$secrets/$name:/run/secrets:ro" "$@"
fi
# <launcher container> written by `make settings`
: "${DRAIN_TIMEOUT:=$(from_dotenv DRAIN_TIMEOUT)}"
set -- --stop-timeout "$((DRAIN_TIMEOUT + 30))" "$@"
set -- --env VLLM_NO_USAGE_STATS=1 "$@"
[ -n "$gpu" ] || set -- --env VLLM_CPU_OMP_THREADS_BIND=nobind "$@"
# </launcher>
if [ -d "$MODEL_ID" ]; then set -- --volume "$(cd "$MODEL_ID" && pwd):/model:ro" "$@"; fi
if [ -n "$gpu" ]; then
    set -- --gpus all --volume "$root/helm/rewardstack/files/judge/vllm-gpu.yaml:/etc/vllm.yaml:ro" "$@"
else
    # vLLM binds its threads to cores, which Docker's default seccomp profile forbids.
    set -- --security-opt seccomp=unconfined --cap-add SYS_NICE \
        --env "VLLM_CPU_KVCACHE_SPACE=${VLLM_CPU_KVCACHE_SPACE:-$(from_dotenv VLLM_CPU_KVCACHE_SPACE)}" \
        --volume "$root/helm/rewardstack/files/judge/vllm-cpu.yaml:/etc/vllm.yaml:ro" "$@"
fi

echo "==> starting $MODEL_ID with $image"
run_detached "the judge" --shm-size 8g --publish "$HOST:$PORT:8000" --volume "$cache:/root/.cache/huggingface" \
    --volume "$HOME/.cache/vllm:/root/.cache/vllm" "$@"
announce LLM_JUDGE_SERVER "${LLM_JUDGE_SERVER_API_KEY:-}"
