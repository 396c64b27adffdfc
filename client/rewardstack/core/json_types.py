"""Convert values from data loaders (NumPy scalars and arrays, tuples, nested mappings) to plain JSON types."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    import numpy as np

MAX_DEPTH = 100
"""Maximum nesting of lists and mappings in a sample; much deeper nesting exceeds Python's recursion limit."""
FLOAT_BYTES = 8
"""Size of Python's float, in bytes."""
MAX_DATA_URL = 60
"""Maximum number of characters of a data URL that are displayed."""
TOO_DEEP = f"the response, reference or extra_info is nested more than {MAX_DEPTH} levels deep; flatten it"
"""The error about a sample that exceeds `MAX_DEPTH`."""


def is_deep(value: Any) -> bool:
    """Return whether lists and mappings are nested more than `MAX_DEPTH` deep in `value`."""
    level = _containers([value])
    for _ in range(MAX_DEPTH):
        if not level:
            return False
        level = [part for container in level for part in _containers(container)]
    return bool(level)


def _containers(container: Any) -> list[Any]:
    """Return the lists and mappings that are elements of a list or values of a mapping."""
    values = container.values() if isinstance(container, Mapping) else container
    return [value for value in values if isinstance(value, Mapping) or is_list(value)]


def is_list(value: Any) -> TypeGuard[Sequence[Any]]:
    """Return whether `value` is a sequence, such as a list or OmegaConf's `ListConfig`, but not text or bytes."""
    return isinstance(value, (list, tuple)) or (
        isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview))
    )


def is_array(value: Any) -> TypeGuard[np.ndarray[Any, Any]]:
    """Return whether `value` is a NumPy array, without importing NumPy."""
    if "numpy" not in sys.modules:
        return False
    import numpy as np

    return isinstance(value, np.ndarray)


def _is_scalar(value: Any) -> TypeGuard[np.generic]:
    """Return whether `value` is a NumPy scalar, without importing NumPy."""
    if "numpy" not in sys.modules:
        return False
    import numpy as np

    return isinstance(value, np.generic)


def is_finite(value: Any) -> TypeGuard[int | float]:
    """Return whether `value` is a number (not a boolean) that a finite float can represent."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def plain(value: Any) -> Any:
    """Convert NumPy scalars and arrays, sequences and mappings in `value` to Python numbers, lists and dicts.

    NumPy floats of fewer than 64 bits become the number that NumPy prints: 0.1, not 0.10000000149011612. Values of
    other types are returned unchanged, even if they are not JSON serializable.
    """
    if isinstance(value, (str, bool, int, float)) or value is None:
        return value
    if _is_scalar(value):
        return float(str(value)) if _is_short(value) else value.item()
    if is_array(value):
        return plain(value[()] if value.ndim == 0 else [*value]) if _is_short(value) else plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if is_list(value):
        return [plain(part) for part in value]
    return value


def shorten(value: Any) -> Any:
    """Convert a value with `plain` for display; shorten data URLs, and replace bytes and objects with descriptions."""
    value = plain(value)
    if isinstance(value, list):
        return [shorten(element) for element in value]
    if isinstance(value, dict):
        return {name: shorten(element) for name, element in value.items()}
    if isinstance(value, str) and value.startswith("data:") and len(value) > MAX_DATA_URL:
        return f"{value[:MAX_DATA_URL]}… ({len(value)} characters)"
    if isinstance(value, (str, int, float)) or value is None:
        return value
    return f"({len(value)} bytes)" if isinstance(value, bytes) else f"(a value of type {type(value).__name__})"


def _is_short(value: np.generic | np.ndarray[Any, Any]) -> bool:
    return value.dtype.kind == "f" and value.dtype.itemsize < FLOAT_BYTES
