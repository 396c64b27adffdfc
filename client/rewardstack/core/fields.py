"""Read and validate the fields of `extra_info`; errors name the field and its valid values."""

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
"""The argument that has a sample's options; errors prefix the names of fields with it."""
LONGEST = 50
"""Maximum number of characters of a value that an error shows."""


class Fields:
    """The fields of one sample's `extra_info`.

    None and NaN mean a missing field, as in the rows of a Parquet file. All methods except `get` raise RequestError if
    the value is invalid.

    Args:
        values: the values by field name.
    """

    def __init__(self, values: Mapping[str, Any]) -> None:
        self._values = values

    def get(self, name: str) -> Any:
        """Return the value of a field in plain JSON types, without validation; None if it is missing."""
        value = self._values.get(name)
        if value is None:
            return None
        value = plain(value)
        return None if is_missing(value) else value

    def text(self, name: str, default: D) -> str | D:
        """Return a string field; `default` if it is missing."""
        value = self.get(name)
        if value is None:
            return default
        if not isinstance(value, str):  # the value is not shown: it may be an API key
            raise field_error(name, f"expected a string, got {type(value).__name__}")
        return value

    def number(self, name: str, default: D, low: float, high: float, *, is_exclusive: bool = False) -> float | D:
        """Return a number from `low` to `high`, excluding `low` if `is_exclusive`; `default` if it is missing."""
        value = self.get(name)
        if value is None:
            return default
        if not is_finite(value) or not low <= value <= high or (is_exclusive and value == low):
            bounds = f"above {low:g} and at most {high:g}" if is_exclusive else f"from {low:g} to {high:g}"
            raise value_error(name, f"a number {bounds}", value)
        return float(value)

    def integer(self, name: str, default: D, low: int, high: int) -> int | D:
        """Return an integer from `low` to `high`; `default` if it is missing."""
        value = self.get(name)
        if value is None:
            return default
        if not is_finite(value) or value != int(value) or not low <= value <= high:
            raise value_error(name, f"a whole number from {low} to {high}", value)
        return int(value)

    def flag(self, name: str, default: bool) -> bool:
        """Return a boolean field; `default` if it is missing."""
        value = self.get(name)
        if not isinstance(value, (bool, type(None))):
            raise value_error(name, "true or false", value)
        return default if value is None else value

    def choice(self, name: str, choices: Sequence[C]) -> C:
        """Return one of `choices`; the first if the field is missing."""
        value = self.get(name)
        if value is None:
            return choices[0]
        if value not in choices:
            raise value_error(name, f"one of {', '.join(choices)}", value)
        return choices[choices.index(value)]


def is_missing(value: Any) -> bool:
    """Return whether a value means a missing field: None or NaN."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def field_error(name: str, why: str) -> RequestError:
    """Return an error about a field of `extra_info`.

    Args:
        name: name of the field.
        why: what is wrong, and the remedy.
    """
    return RequestError(f"{OPTIONS}.{name}: {why}", f"{OPTIONS}.{name}")


def value_error(name: str, expected: str, value: Any) -> RequestError:
    """Return an error about an invalid value of a field of `extra_info`.

    Args:
        name: name of the field.
        expected: description of valid values.
        value: the invalid value. The error shows the start of a string, number or boolean, and only the type of any
            other value.
    """
    simple = isinstance(value, (str, float)) or is_finite(value)  # `repr` fails for very large integers
    shown = repr(value) if simple or isinstance(value, bool) else f"a value of type {type(value).__name__}"
    return field_error(name, f"expected {expected}, got {shown if len(shown) <= LONGEST else shown[:LONGEST] + '…'}")


def serialization_error(extra: Mapping[str, Any]) -> RequestError:
    """Return an error about the first field that is not JSON serializable."""
    for name, value in extra.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError) as error:
            return field_error(name, f"{error}; use JSON types only")
    return RequestError("extra_info: not JSON serializable; use JSON types only", OPTIONS)
