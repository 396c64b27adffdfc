"""What each service reads of the settings and the environment: only its own part, as a container would."""

from __future__ import annotations

import os

from services.stack.rundir import RunDir
from services.stack.settings_table import read_by

SYSTEM_VARIABLES = ("HOME", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "PATH", "TMPDIR", "TZ")
"""What every service is given as it is."""

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
"""What a server needs to find a model on a hub, from the environment as it is."""

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

READ_BY = {
    # A local reward server listens on a socket, and REWARD_PORT is the gateway's.
    "rules": tuple(name for name in read_by("rules") if name != "REWARD_PORT"),
    "worker": tuple(name for name in read_by("worker") if name != "WORKER_METRICS_PORT"),
}
"""The settings that the services which score read."""


def of_model_servers(run: RunDir) -> dict[str, str]:
    """Return where model servers leave files, all in the run directory; models of a hub stay where the user has them.

    Compiled code survives `make down`, which makes the next start quicker.
    """
    caches = {name: str(run.caches / folder) for name, folder in CACHES.items()}
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    return {"TMPDIR": str(run.temporary), **caches, "HF_HOME": os.environ.get("HF_HOME") or f"{cache}/huggingface"}


def from_environment(*names: str) -> dict[str, str]:
    """Return those of these variables that are set, as they are."""
    return {name: os.environ[name] for name in names if name in os.environ}
