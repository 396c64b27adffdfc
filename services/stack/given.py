"""What each service is given of the settings and the environment: its own part, as a container would be."""

from __future__ import annotations

import os
from collections.abc import Mapping

FROM_THE_SYSTEM = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")

HUB = (
    "HF_ENDPOINT",
    "HF_HOME",
    "HF_HUB_CACHE",
    "HF_HUB_OFFLINE",
    "HF_TOKEN",
    "HTTPS_PROXY",
    "HTTP_PROXY",
    "NO_PROXY",
    "https_proxy",
    "http_proxy",
    "no_proxy",
)
"""What a server takes to find a model on a hub, from the environment as it is."""

SCORING = (
    "DATASET_PATH",
    "EMBEDDING_SERVER_API_KEY",
    "EMBEDDING_SERVER_TIMEOUT",
    "EMBEDDING_SERVER_URL",
    "GOLDEN_THRESHOLD",
    "JUDGE_REVISION",
    "LLM_JUDGE_MODEL",
    "LLM_JUDGE_SERVER_API_KEY",
    "LLM_JUDGE_SERVER_TIMEOUT",
    "LLM_JUDGE_SERVER_URL",
    "REWARDSTACK_ROUTES",
    "REWARDSTACK_RUN_ID",
    "REWARD_CACHE_ITEMS",
    "REWARD_CACHE_TTL",
    "REWARD_CACHE_URL",
    "REWARD_FUNCTIONS",
    "REWARD_JOB_RETRIES",
    "REWARD_QUEUE_URL",
    "REWARD_TYPE",
    "VERIFY_PROCESSES",
    "VERIFY_TIMEOUT",
)
"""What whoever scores reads: the reward server and the workers."""

GIVEN_TO = {
    "rules": (
        *SCORING,
        "MAX_BODY_BYTES",
        "PROMETHEUS_MULTIPROC_DIR",
        "REWARD_GRACEFUL_TIMEOUT",
        "REWARD_JOB_CHUNK_SIZE",
        "REWARD_JOB_TTL",
        "REWARD_SERVER_API_KEYS",
        "REWARD_SOCKET",
        "REWARD_THREADS",
        "REWARD_WORKERS",
    ),
    "worker": SCORING,
    "judge": ("CUDA_VISIBLE_DEVICES", "VLLM_API_KEY", "VLLM_CPU_KVCACHE_SPACE", "VLLM_NO_USAGE_STATS", *HUB),
    "embedding": ("API_KEY", "CUDA_VISIBLE_DEVICES", *HUB),
}
"""The variables that a service reads itself; the others get theirs in a configuration file."""


def environment(service: str, environ: Mapping[str, str]) -> dict[str, str]:
    """The variables that a service is given, of all that its supervisor was.

    Args:
        service: its name; a replica's has a number behind it, such as `judge-2`.
        environ: what the supervisor was given.
    """
    names = (*FROM_THE_SYSTEM, *GIVEN_TO.get(service.partition("-")[0], ()))
    return {name: environ[name] for name in names if name in environ}


def from_environment(*names: str) -> dict[str, str]:
    """Those of these variables that are set, as they are."""
    return {name: os.environ[name] for name in names if name in os.environ}
