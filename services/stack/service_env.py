"""Select the settings and environment variables that each service gets. As in a container, it gets no others."""

from __future__ import annotations

import os

from services.stack.rundir import RunDir
from services.stack.settings_table import read_by

SYSTEM_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")
"""Environment variables that every service inherits."""

HUB_VARIABLES = (
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
"""Environment variables that model servers inherit to reach a model hub."""

CACHES = {
    "XDG_CACHE_HOME": "",
    "VLLM_CACHE_ROOT": "vllm",
    "VLLM_CONFIG_ROOT": "vllm-config",
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}
"""Cache folder by variable, for files that vLLM and PyTorch would otherwise write to the user's home."""

SETTINGS_BY_SERVICE = {
    # A local reward server listens on a socket; REWARD_PORT is a port of the gateway.
    "rules": tuple(name for name in read_by("rules") if name != "REWARD_PORT"),
    "worker": tuple(name for name in read_by("worker") if name != "WORKER_METRICS_PORT"),
}
"""Settings that the reward server and its workers read, by service."""


def model_server_variables(run: RunDir) -> dict[str, str]:
    """Return variables that keep the files of model servers in the run directory, except models from the hub.

    Compiled code is kept after `make down`, so that the next start is faster.
    """
    caches = {name: str(run.caches / folder) for name, folder in CACHES.items()}
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return {"TMPDIR": str(run.temporary), **caches, "HF_HOME": os.environ.get("HF_HOME") or f"{cache}/huggingface"}


def from_environment(*names: str) -> dict[str, str]:
    """Return those of these environment variables that are set."""
    return {name: os.environ[name] for name in names if name in os.environ}
