"""One's own reward functions: the decorator that marks them, and the loading of the files that hold them."""

from __future__ import annotations

import importlib.util
import math
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, overload

from rewardstack.errors import SettingsError
from rewardstack_rules.functions.adapters import read_shape
from rewardstack_rules.functions.fingerprint import fingerprint
from rewardstack_rules.functions.registry import Rule

MARK = "__reward_function__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Mark:
    """What the decorator was told."""

    name: str
    range: tuple[float, float]
    confined: bool


@overload
def reward_function(function: F, /) -> F: ...
@overload
def reward_function(
    *, name: str = "", range: tuple[float, float] = ..., confined: bool = False
) -> Callable[[F], F]: ...
def reward_function(
    function: F | None = None,
    /,
    *,
    name: str = "",
    range: tuple[float, float] = (-math.inf, math.inf),
    confined: bool = False,
) -> F | Callable[[F], F]:
    """Makes a function a reward function of the server that loads its file.

    It may take `(response, reference, ...)` and return a number, a dict with `score` and further numbers, or None for
    a sample without a score; every further argument is a field of `extra_info`. Or it takes
    `(prompts, responses, golden_responses=None)` and returns a list of numbers; it is then called with one sample at
    a time. A function whose reference has a default is called without one too.

    Args:
        function: the function, where the decorator stands without arguments.
        name: what a `data_source` or `reward_type` calls it; the function's own name where empty.
        range: the lowest and the highest value it gives.
        confined: run it where it has no network, starts no program and writes no file, as the built-in ones are run.
    """

    def mark(function: F) -> F:
        setattr(function, MARK, Mark(name or function.__name__, range, confined))
        return function

    return mark if function is None else mark(function)


def load_file(path: Path) -> Iterator[Rule]:
    """The reward functions of a file, each to be run where it can be killed.

    Args:
        path: a Python file; modules beside it can be imported.

    Raises:
        SettingsError: the file is missing, or importing it raises.
        RouteError: a function has a signature that no shape has.
    """
    module = _import(path)
    marked = {id(one): one for one in vars(module).values() if hasattr(one, MARK)}
    own = [one for one in marked.values() if one.__module__ == module.__name__]
    hashed = fingerprint(path) if own else ""
    for function in own:
        mark, shape = getattr(function, MARK), read_shape(function)
        yield Rule(
            mark.name,
            shape.evaluate,
            hashed,
            shape.needs_reference,
            shape.fields,
            mark.range,
            confined=mark.confined,
        )


def _import(path: Path) -> ModuleType:
    name = f"rewardstack_functions_{path.stem}_{blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SettingsError(f"{path} is no Python file; reward functions stand in .py files", "REWARD_FUNCTIONS")
    if str(path.parent) not in sys.path:
        sys.path.append(str(path.parent))
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise SettingsError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}{_place(path, error)}; "
            "correct it, or take it out of REWARD_FUNCTIONS",
            "REWARD_FUNCTIONS",
        ) from error
    return module


def _place(path: Path, error: Exception) -> str:
    """The last line of the file that the error came by; a SyntaxError names its own."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" (line {lines[-1]})" if lines else ""
