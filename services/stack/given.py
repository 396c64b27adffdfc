"""What each service is given of the settings and the environment: its own part, as a container would be."""

from __future__ import annotations

import os

from services.stack.rundir import RunDir
from services.stack.settings_table import read_by

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

CACHES = {
    "XDG_CACHE_HOME": "",
    "VLLM_CACHE_ROOT": "vllm",
    "VLLM_CONFIG_ROOT": "vllm-config",
    "TORCHINDUCTOR_CACHE_DIR": "torchinductor",
    "TRITON_CACHE_DIR": "triton",
    "CUDA_CACHE_PATH": "cuda",
    "FLASHINFER_WORKSPACE_BASE": "flashinfer",
}
"""By variable, the folder among the caches for what vLLM, PyTorch and their kernels would write into the home."""

GIVEN_TO = {
    # A local reward server listens on a socket, and REWARD_PORT is the gateway's.
    "rules": tuple(name for name in read_by("rules") if name != "REWARD_PORT"),
    "worker": tuple(name for name in read_by("worker") if name != "WORKER_METRICS_PORT"),
}
"""The settings that whoever scores reads."""


def of_model_servers(run: RunDir) -> dict[str, str]:
    """Where model servers leave files, all in the run directory; models of a hub stay where the user has them.

    Compiled code survives `make down`, for the next start is quicker by it.
    """
    caches = {name: str(run.caches / folder) for name, folder in CACHES.items()}
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return {"TMPDIR": str(run.temporary), **caches, "HF_HOME": os.environ.get("HF_HOME") or f"{cache}/huggingface"}


def from_environment(*names: str) -> dict[str, str]:
    """Those of these variables that are set, as they are."""
    return {name: os.environ[name] for name in names if name in os.environ}
