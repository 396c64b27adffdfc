"""Fields of `extra_info`, checked for type and bounds: an error names the field, and what it may hold."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from rewardstack.core.json_types import is_finite, plain
from rewardstack.errors import RequestError

C = TypeVar("C", bound=str)
D = TypeVar("D")
OPTIONS = "extra_info"
"""What holds the options of a sample; names of its fields begin with it in errors."""
LONGEST = 50
"""Characters of a value that an error shows."""


class Fields:
    """What a sample brings.

    None and NaN stand for a field that is not there, as they do in the rows of a Parquet file. Every method but `get`
    raises RequestError where the field's value does not fit.

    Args:
        values: by the fields' names.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        """The value of a field in plain JSON types, whatever it is; None where there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        value = plain(value)
        return None if is_missing(value) else value

    def text(self, name: str, default: D) -> str | D:
        """A string."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, str):  # not shown: the field may be one for a key
            raise field_error(name, f"expected a string, got {type(value).__name__}")
        return value

    def number(self, name: str, default: D, low: float, high: float, *, above: bool = False) -> float | D:
        """A number from `low` to `high`; with the flag it has to be above `low`."""
        value = self.get(name)
        if value is None:
            return default
        if not is_finite(value) or not low <= value <= high or (above and value == low):
            bounds = f"above {low:g} and at most {high:g}" if above else f"from {low:g} to {high:g}"
            raise unfit(name, f"a number {bounds}", value)
        return float(value)

    def whole(self, name: str, default: D, low: int, high: int) -> int | D:
        """A whole number from `low` to `high`."""
        value = self.get(name)
        if value is None:
            return default
        if not is_finite(value) or value != int(value) or not low <= value <= high:
            raise unfit(name, f"a whole number from {low} to {high}", value)
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or False."""
        value = self.get(name)
        if not isinstance(value, (bool, type(None))):
            raise unfit(name, "true or false", value)
        return default if value is None else value

    def choice(self, name: str, choices: Sequence[C]) -> C:
        """One of some words; the first where there is no such field."""
        value = self.get(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise unfit(name, f"one of {', '.join(choices)}", value)
        return choices[choices.index(value)]


def is_missing(value: Any) -> bool:
    """Whether a field's value says that the field is not there."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def field_error(name: str, why: str) -> RequestError:
    """What is raised where a field of `extra_info` cannot be used.

    Args:
        name: of the field.
        why: and the remedy.
    """
    return RequestError(f"{OPTIONS}.{name}: {why}", f"{OPTIONS}.{name}")


def unfit(name: str, expected: str, value: Any) -> RequestError:
    """What is raised where the value of a field of `extra_info` does not fit.

    Args:
        name: of the field.
        expected: instead of the value.
        value: is shown where it is simple, and cut where it is long.
    """
    simple = isinstance(value, (str, float)) or is_finite(value)  # a larger integer may have digits without end
    shown = repr(value) if simple or isinstance(value, bool) else f"a value of type {type(value).__name__}"
    return field_error(name, f"expected {expected}, got {shown if len(shown) <= LONGEST else shown[:LONGEST] + '…'}")


def unwritable(extra: Mapping[str, Any]) -> RequestError:
    """What is raised of fields of which one cannot be written as JSON."""
    for name, value in extra.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            return field_error(name, f"{error}; it must hold what JSON can")
    return RequestError("extra_info: it must hold what JSON can", OPTIONS)
