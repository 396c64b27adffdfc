"""Options of reward functions: fields of `extra_info`, checked.

None and NaN stand for a field that is not there, as they do in the rows of a Parquet file.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from rewardstack_rules.functions.outcome import Unscored

LARGEST = 1e12
"""The largest number that any option takes."""


def choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """One of some words; the first where the field is not there.

    Raises:
        Unscored: it is something else; the message names the field.
    """
    if is_absent(value):
        return choices[0]
    if value not in choices:
        raise Unscored(f"extra_info.{name}: {_shown(value)} is none of {', '.join(choices)}")
    return str(value)


def number(name: str, value: Any, low: float, high: float = LARGEST) -> float | None:
    """A number from `low` to `high`; None where the field is not there.

    Raises:
        Unscored: it is something else; the message names the field.
    """
    if is_absent(value):
        return None
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not low <= value <= high:
        raise Unscored(f"extra_info.{name}: {_shown(value)} is no number from {low:g} to {high:g}")
    return float(value)


def whole(name: str, value: Any, default: int, high: int) -> int:
    """A whole number from 1 to `high`; `default` where the field is not there.

    Raises:
        Unscored: it is something else; the message names the field.
    """
    found = number(name, value, 1, high)
    if found is None:
        return default
    if not found.is_integer():
        raise Unscored(f"extra_info.{name}: {_shown(value)} is no whole number")
    return int(found)


def is_absent(value: Any) -> bool:
    """Whether a field's value says that the field is not there."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def _shown(value: Any) -> str:
    text = repr(value) if isinstance(value, (str, float, bool)) else f"a value of type {type(value).__name__}"
    return text if len(text) <= 50 else text[:50] + "…"
