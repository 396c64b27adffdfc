"""Mark custom reward functions with a decorator, and load the files that contain them."""

from __future__ import annotations

import inspect
import math
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, TypeVar, cast, overload

from rewardstack.errors import RouteError, SettingsError
from rewardstack_rules.functions.binding import bind
from rewardstack_rules.functions.call import get_code, without_partial
from rewardstack_rules.functions.fingerprint import fingerprint
from rewardstack_rules.functions.registry import Rule

MARK = "__reward_function__"
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Mark:
    """The options of the decorator `reward_function`, and where it was applied.

    Args:
        name: the option `name`.
        range: the option `range`.
        confined: the option `confined`.
        module: the name of the module that applied the decorator.
        earlier: an earlier reward function of the module that has the same name as this one; None if there is none.
    """

    name: str
    range: tuple[float, float]
    confined: bool
    module: str
    earlier: Any = None


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
    """Mark a callable as a reward function of the server that loads its file.

    Parameters are bound by name: `response`, `reference`, `prompt`, the names that verl, TRL, OpenRLHF and slime use
    for them, and fields of `extra_info` (table in `docs/rules.md`). The callable returns a number, a dict with `score`
    and other numbers, or None for a sample without a score.

    Args:
        function: a function, an `async` function, a callable object or its class, a bound method, or a
            `functools.partial`; assign it to a variable of the module.
        name: the name in `data_source` and `reward_type`; by default the name of the function or class, or for other
            callables the name of the variable.
        range: the lowest and the highest value that the callable returns.
        confined: whether to run the callable in a confined process. Such a process can use the network, start programs
            or write files only if REWARD_FUNCTIONS_ALLOW permits it.

    Raises:
        TypeError: `function` cannot be called, for example because it is a name.
    """
    _check_callable(function)
    variables = sys._getframe(1).f_globals

    def set_mark(function: F) -> F:
        marked: Any = function
        earlier = variables.get(getattr(function, "__name__", ""))
        earlier = earlier if earlier is not function and isinstance(getattr(earlier, MARK, None), Mark) else None
        mark = Mark(name, range, confined, variables.get("__name__", ""), earlier)
        try:
            setattr(marked, MARK, mark)
        except (AttributeError, TypeError):  # a bound method or a function in C accepts no attributes
            marked = partial(function)
            setattr(marked, MARK, mark)
        return cast(F, marked)

    return set_mark if function is None else set_mark(function)


def _check_callable(function: object) -> None:
    if function is not None and not callable(function):
        given = f"name={function!r}" if isinstance(function, str) else "name=…, range=…, confined=…"
        raise TypeError(f"reward_function({function!r:.80}): expected a callable; write @reward_function({given})")


def load_file(path: Path) -> Iterator[Rule]:
    """Yield a rule for each callable that a file marks as a reward function.

    Skip reward functions that the file imports, because another file has marked them. The rules run in isolated
    processes.

    Args:
        path: a Python file, which can import modules in its folder.

    Raises:
        SettingsError: the file is missing, or importing it raises.
        RouteError: a function cannot be used, for example because a parameter cannot be bound; the message has the
            function, its file and the remedy.
    """
    module = _import(path)
    marked: dict[int, tuple[str, Any]] = {}
    for variable, value in vars(module).items():
        mark = getattr(value, MARK, None)
        if isinstance(mark, Mark) and mark.module == module.__name__ and not _is_unmarked_instance(value):
            marked.setdefault(id(value), (variable, value))
    file_hash = fingerprint(path) if marked else ""
    for variable, function in marked.values():
        earlier: Any = getattr(function, MARK).earlier
        if earlier is not None and getattr(earlier, MARK).module == module.__name__ and id(earlier) not in marked:
            raise RouteError(f"{path}: there are two reward functions named {variable!r}; rename one")
        yield _rule(path, variable, function, file_hash)


def _is_unmarked_instance(value: Any) -> bool:
    """Return whether a value is an object that is not marked, but has the mark of its class."""
    return not isinstance(value, type) and MARK in vars(type(value)) and MARK not in getattr(value, "__dict__", {})


def _rule(path: Path, variable: str, function: Any, file_hash: str) -> Rule:
    mark: Mark = getattr(function, MARK)
    has_name = isinstance(function, (FunctionType, type)) and function.__name__.isidentifier()
    name = mark.name or (function.__name__ if has_name else variable)
    code = get_code(function)
    line = f", line {code.co_firstlineno}" if code and code.co_filename == str(path) else ""
    try:
        callee = _instance(function) if isinstance(function, type) else function
        if mark.confined and _is_async(callee):
            raise RouteError(
                "an async function needs sockets, which confined functions do not have; remove confined=True"
            )
        bound = bind(callee, f"reward function {name!r} ({path.name}{line})")
        low, high = _range(mark.range)
    except RouteError as error:
        raise RouteError(f"{path}{line}: reward function {name!r}: {error}", error.field or "") from error
    return Rule(
        name,
        bound.evaluate,
        file_hash,
        bound.needs_reference,
        bound.fields,
        bound.field_parameters,
        (low, high),
        confined=mark.confined,
        is_custom=True,
    )


def _range(declared: Any) -> tuple[float, float]:
    """Return the lowest and the highest value of the range that a function declares.

    Raises:
        RouteError: the range is not two numbers in ascending order.
    """
    try:
        low, high = declared
        if isinstance(low, (bool, str)) or isinstance(high, (bool, str)):
            raise TypeError
        low, high = float(low), float(high)
    except (TypeError, ValueError, OverflowError):
        low = high = math.nan
    if not low <= high or low == math.inf or high == -math.inf:
        raise RouteError(
            f"range={declared!r:.80}: expected the lowest and the highest value, two numbers such as (0.0, 1.0)",
            "range",
        )
    return low, high


def _instance(cls: type) -> Any:
    """Create an object of a class that is marked as a reward function.

    Raises:
        RouteError: objects of the class cannot be called, or cannot be created without arguments.
    """
    if "__call__" not in dir(cls):
        raise RouteError("its objects cannot be called; define `__call__`")
    try:
        return cls()
    except TypeError as error:
        raise RouteError(f"{error}; mark an object instead: `name = reward_function({cls.__name__}(…))`") from error


def _is_async(function: Any) -> bool:
    function = without_partial(function)
    return any(inspect.iscoroutinefunction(one) for one in (function, type(function).__call__))


class _Uncached(SourceFileLoader):
    """Compiles a file every time, because Python uses a stale `.pyc` if two edits of equal size share a second."""

    def get_code(self, fullname: str) -> CodeType:
        return self.source_to_code(self.get_data(self.path), self.path)


def _import(path: Path) -> ModuleType:
    name = f"rewardstack_functions_{path.stem}_{blake2b(str(path).encode(), digest_size=4).hexdigest()}"
    loader = _Uncached(name, str(path))
    spec = spec_from_file_location(name, path, loader=loader)
    if spec is None or path.suffix != ".py":
        raise SettingsError(f"{path} is not a Python file; put reward functions into .py files", "REWARD_FUNCTIONS")
    if (folder := str(path.resolve().parent)) not in sys.path:
        sys.path.append(folder)
    sys.dont_write_bytecode = True  # of modules in the folder of the file, for the reason that `_Uncached` gives
    module = sys.modules[name] = module_from_spec(spec)
    try:
        loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise SettingsError(
            f"{path} cannot be loaded: {type(error).__name__}: {error}{_place(path, error)}; "
            "correct it, or take it out of REWARD_FUNCTIONS",
            "REWARD_FUNCTIONS",
        ) from error
    return module


def _place(path: Path, error: BaseException) -> str:
    """Return ` (line N)`, the innermost line of the file in the traceback; empty if there is none (SyntaxError)."""
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f" (line {lines[-1]})" if lines else ""
