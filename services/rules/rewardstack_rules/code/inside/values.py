"""Exchange plain values, as tagged JSON over a socket, between two processes that do not trust each other.

Only values of the types that `encode` supports are sent. An object of another type stays in its process, and the
receiver gets a number that refers to it. Values are rebuilt from plain parts, so that the receiver never runs code of
the sender.
"""

from __future__ import annotations

import builtins
import importlib
import json
import os
import struct
import sys
from collections import deque, namedtuple
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from keyword import iskeyword
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

MAX_BYTES = 16 << 20
"""Maximum size of a message, in bytes."""
MAX_DEPTH = 60
MAX_FIELDS = 64
"""Maximum number of fields of a named tuple. A named tuple with more is sent as a plain tuple."""
LENGTH = struct.Struct("!I")
MODULES = (
    *("math", "cmath", "operator", "itertools", "functools", "collections", "string", "re", "datetime", "heapq"),
    *("bisect", "random", "decimal", "fractions", "statistics", "copy", "typing", "json", "sys", "time", "io", "types"),
)
"""Modules that every program has without an import, as in LiveCodeBench."""
SHARED = ("builtins", *(name for name in MODULES if name not in ("sys", "io", "types")))
"""Modules whose functions and classes are sent by name, because both processes have the same ones."""
NEVER_SENT = frozenset(
    {"eval", "exec", "compile", "open", "input", "exit", "quit", "breakpoint", "help", "globals", "locals", "vars"}
    | {"getattr", "setattr", "delattr", "memoryview", "__import__"}
)
"""Built-in functions that are never sent by name, because they access code, files, variables or attributes."""
LIBRARIES = {"np": "numpy", "pd": "pandas", "sp": "scipy", "sympy": "sympy", "nx": "networkx"}
"""Libraries by the alias under which tests may use them without an import."""


class ValueFormatError(Exception):
    """A received message is malformed."""


def _shared() -> dict[tuple[str, str], Any]:
    kinds = (type, FunctionType, BuiltinFunctionType)
    found = {}
    for module in SHARED:
        for name, value in vars(importlib.import_module(module)).items():
            if not name.startswith("_") and name not in NEVER_SENT and isinstance(value, kinds):
                found[module, name] = value
    return found


BY_NAME = _shared()
NAMES = {id(value): name for name, value in reversed(BY_NAME.items())}


def encode(value: Any, keep: Callable[[Any], dict[str, Any]], depth: int = 0) -> Any:
    """Return a value in JSON types.

    Args:
        value: any Python object.
        keep: called for an object of an unsupported type; keeps it and returns a reference to send in its place.
        depth: number of containers around the value.

    Raises:
        ValueError: the value is nested too deeply.
    """
    if depth > MAX_DEPTH:
        raise ValueError("nested too deeply")

    def within(parts: Any) -> list[Any]:
        return [encode(part, keep, depth + 1) for part in parts]

    if value is None or value is True or value is False or type(value) is str:
        return value
    if names := _field_names(value):
        return {"namedtuple": [type(value).__name__, names, within(value)]}
    for kind in (list, tuple, set, frozenset, deque):
        if isinstance(value, kind):
            return within(value) if kind is list else {kind.__name__: within(value)}
    if isinstance(value, dict):
        return {"dict": [within(pair) for pair in value.items()]}
    simple = _encode_simple(value)
    if simple is not None:
        return simple
    if id(value) in NAMES:
        return {"name": NAMES[id(value)]}
    if isinstance(value, ModuleType):
        return {"module": value.__name__}
    return keep(value)


def _field_names(value: Any) -> list[str]:
    """Return the names of the fields of a named tuple; an empty list for other objects."""
    names = getattr(type(value), "_fields", None) if isinstance(value, tuple) else None
    if type(names) is not tuple or len({*names}) != len(value) or len(names) > MAX_FIELDS:
        return []
    return [*names] if all(map(_is_name, (type(value).__name__, *names))) else []


def _is_name(text: Any) -> bool:
    return type(text) is str and text.isidentifier() and text[0] != "_" and not iskeyword(text)


@lru_cache(256)
def _named_tuple(name: str, *fields: str) -> Callable[..., Any]:
    return namedtuple(name, fields)


def _encode_simple(value: Any) -> Any:
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        number = int(value)
        return number if abs(number) < 2**53 else {"int": hex(number)}
    if isinstance(value, (float, complex)):
        return {type(0.0 if isinstance(value, float) else 0j).__name__: repr(value + 0)}
    if isinstance(value, (bytes, bytearray)):
        return {"bytearray" if isinstance(value, bytearray) else "bytes": bytes(value).hex()}
    if isinstance(value, (Decimal, Fraction)):
        return {type(value).__name__: str(value)}
    if isinstance(value, (date, time)):
        kind = "datetime" if isinstance(value, datetime) else "time" if isinstance(value, time) else "date"
        return {kind: value.isoformat()}
    if isinstance(value, timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, range):
        return {"range": [value.start, value.stop, value.step]}
    return _encode_numpy(value) if "numpy" in sys.modules else None


def _encode_numpy(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray) and value.dtype.kind in "biufc":
        return {"array": [value.dtype.str, list(value.shape), value.tobytes().hex()]}
    if isinstance(value, np.generic) and value.dtype.kind in "biufc":
        return _encode_simple(value.item()) if value.dtype.kind != "b" else bool(value)
    return None


def _array(parts: Any) -> Any:
    import numpy as np

    kind, shape, data = parts
    if np.dtype(kind).kind not in "biufc":
        raise ValueFormatError(kind)
    return np.frombuffer(bytes.fromhex(data), kind).reshape(shape).copy()


PLAIN: dict[str, Callable[[Any], Any]] = {
    "int": lambda text: int(text, 16),
    "float": float,
    "complex": complex,
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "Decimal": Decimal,
    "Fraction": Fraction,
    "date": date.fromisoformat,
    "datetime": datetime.fromisoformat,
    "time": time.fromisoformat,
    "timedelta": lambda parts: timedelta(*parts),
    "range": lambda parts: range(*parts),
    "array": _array,
    "name": lambda name: BY_NAME[tuple(name)],
}
CONTAINERS: dict[str, Callable[[Any], Any]] = {"tuple": tuple, "set": set, "frozenset": frozenset, "deque": deque}


def decode(value: Any, stand_in: Callable[[str, Any], Any]) -> Any:
    """Return the value that `encode` wrote.

    Args:
        value: the encoded value, in JSON types.
        stand_in: returns a replacement for an object that was not sent, given the tag and content of its reference.

    Raises:
        ValueFormatError: the value is malformed.
    """
    try:
        return _decode(value, stand_in)
    except ValueFormatError:
        raise
    except Exception as error:
        raise ValueFormatError(type(error).__name__) from None


def _decode(value: Any, stand_in: Callable[[str, Any], Any]) -> Any:
    if isinstance(value, list):
        return [_decode(part, stand_in) for part in value]
    if not isinstance(value, dict):
        return value
    [(tag, content)] = value.items()
    if tag in CONTAINERS:
        return CONTAINERS[tag](_decode(part, stand_in) for part in content)
    if tag == "dict":
        return {_decode(key, stand_in): _decode(part, stand_in) for key, part in content}
    if tag == "namedtuple":
        name, fields, parts = content
        if len(fields) > MAX_FIELDS or not all(map(_is_name, (name, *fields))):
            raise ValueFormatError(tag)
        return _named_tuple(name, *fields)(*(_decode(part, stand_in) for part in parts))
    if tag in PLAIN:
        return PLAIN[tag](content)
    return stand_in(tag, content)


class Channel:
    """One end of the socket between a tester and a candidate.

    Args:
        fd: descriptor of this end.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def send(self, message: Any) -> None:
        """Send a message; raise ValueError if it is too long, or OSError if the other end is closed."""
        body = json.dumps(message).encode("ascii")
        if len(body) > MAX_BYTES:
            raise ValueError(f"a message of {len(body)} bytes is over the limit of {MAX_BYTES}")
        rest = memoryview(LENGTH.pack(len(body)) + body)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def receive(self) -> Any:
        """Return the next message; raise EOFError if the other end is closed, ValueFormatError if it is malformed."""
        (length,) = LENGTH.unpack(self._exactly(LENGTH.size))
        if length > MAX_BYTES:
            raise ValueFormatError("too long")
        try:
            return json.loads(self._exactly(length))
        except (ValueError, RecursionError):
            raise ValueFormatError("not JSON") from None

    def _exactly(self, size: int) -> bytes:
        pieces = []
        while size:
            piece = os.read(self._fd, min(size, 1 << 20))
            if not piece:
                raise EOFError
            pieces.append(piece)
            size -= len(piece)
        return b"".join(pieces)


def exception(name: str, message: str, bases: list[str]) -> Exception:
    """Return an exception of a built-in type that represents an exception of the other process.

    The type is the first of `name` and `bases` that names a built-in exception, or `RuntimeError` if none of them does.

    Args:
        name: name of the other exception's type.
        message: the other exception's message.
        bases: names of the base classes of the other exception's type.
    """
    for known in (name, *bases):
        kind = getattr(builtins, known, None)
        if isinstance(kind, type) and issubclass(kind, Exception):
            try:
                return kind(message)
            except TypeError:  # UnicodeDecodeError takes five arguments
                continue
    return RuntimeError(f"{name}: {message}")
