"""What each service is given of the settings and the environment: its own part, as a container would be."""

from __future__ import annotations

import os
from collections.abc import Mapping

from rewardstack_settings.table import read_by

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

GIVEN_TO = {
    # A local reward server listens on a socket, and REWARD_PORT is the gateway's.
    "rules": tuple(name for name in read_by("rules") if name != "REWARD_PORT"),
    "worker": tuple(name for name in read_by("worker") if name != "WORKER_METRICS_PORT"),
    "judge": ("CUDA_VISIBLE_DEVICES", "VLLM_API_KEY", "VLLM_NO_USAGE_STATS", *read_by("judge"), *HUB),
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
