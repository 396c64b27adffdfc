"""Compare what a program printed or returned with the expected result. No code of the program runs here."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d{1,6})?", re.ASCII)
"""Matches a number. Programs can print anything, so the pattern must match in linear time."""
LEADING_ZERO = re.compile(r"[+-]?0\d")
"""Matches the start of digits with a leading zero, such as `0011`: an identifier or a bit string, which is not 11."""
MAX_DEPTH = 100
"""Values that are nested more deeply than this are never equal."""
LENGTH_FACTOR, LENGTH_SLACK = 8, 1 << 20
"""An output is wrong if it is longer than `LENGTH_FACTOR` times the expected output plus `LENGTH_SLACK` characters."""
MODES = ("lines", "tokens", "exact")
"""The ways to compare printed text (see `same_output`); the first is the default."""


def same_output(printed: str, expected: str, mode: str, tolerance: float | None = None) -> bool:
    """Return whether a program printed what was expected.

    Args:
        printed: the program's output.
        expected: the output that the test expects.
        mode: `lines` (compare the words of each line; ignore blank lines at both ends), `tokens` (compare the words,
            regardless of lines), or `exact` (compare each character). The first two compare numbers by value, but
            digits with a leading zero are text unless there is a tolerance.
        tolerance: maximum difference of two numbers. It is relative to the expected number, or absolute if the expected
            number is between -1 and 1. None if values must be equal. `exact` ignores it. Numbers that are too large for
            a float must be equal.
    """
    if mode == "exact":
        return printed == expected
    if is_far_longer(printed, expected):
        return False
    if mode == "tokens":
        return _same_tokens(printed.split(), expected.split(), tolerance)
    ours, theirs = ([line.strip() for line in text.strip().split("\n")] for text in (printed, expected))
    if len(ours) != len(theirs):
        return False
    return all(
        one == other or _same_tokens(one.split(), other.split(), tolerance)
        for one, other in zip(ours, theirs, strict=True)
    )


def is_far_longer(ours: str | bytes, theirs: str | bytes) -> bool:
    """Return whether `ours` is so much longer than `theirs` that no comparison is needed."""
    return len(ours) > LENGTH_FACTOR * len(theirs) + LENGTH_SLACK


def _same_tokens(ours: list[str], theirs: list[str], tolerance: float | None) -> bool:
    return len(ours) == len(theirs) and all(
        one == other or _same_number(one, other, tolerance) for one, other in zip(ours, theirs, strict=True)
    )


def _same_number(one: str, other: str, tolerance: float | None) -> bool:
    if not (NUMBER.fullmatch(one) and NUMBER.fullmatch(other)):
        return False
    if tolerance is None:
        return not (LEADING_ZERO.match(one) or LEADING_ZERO.match(other)) and Decimal(one) == Decimal(other)
    value, expected = float(one), float(other)
    are_floats = math.isfinite(value) and math.isfinite(expected)
    return (are_floats and _is_close(value, expected, tolerance)) or Decimal(one) == Decimal(other)


def _is_close(value: float, expected: float, tolerance: float) -> bool:
    if math.isinf(value) or math.isinf(expected):
        return value == expected
    return abs(value - expected) <= tolerance * max(1.0, abs(expected))


def same_value(value: Any, expected: Any, tolerance: float | None = None, depth: int = 0) -> bool:
    """Return whether two JSON values are equal; numbers may differ by `tolerance` (see `same_output`)."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, list) and isinstance(expected, list):
        return len(value) == len(expected) and all(
            same_value(one, other, tolerance, depth + 1) for one, other in zip(value, expected, strict=True)
        )
    if isinstance(value, dict) and isinstance(expected, dict):
        return value.keys() == expected.keys() and all(
            same_value(part, expected[name], tolerance, depth + 1) for name, part in value.items()
        )
    if tolerance is not None and _is_number(value) and _is_number(expected):
        try:
            return _is_close(float(value), float(expected), tolerance)
        except OverflowError:
            return bool(value == expected)
    return bool(value == expected)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
