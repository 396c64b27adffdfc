"""Reads the verdict of a checker, a program of a row that decides whether an output is right.

A checker without a verdict is the row's fault, whatever the reason: the sample is `unscored`.
"""

from __future__ import annotations

import math

from rewardstack_rules.code.comparison import NUMBER

SECONDS = 10.0
"""CPU limit of a checker on one output; all outputs of a sample share the limit of its tests."""
MEMORY = 1 << 30
WORDS = {"true": 1.0, "false": 0.0}
ACCEPTED, REJECTED = 0, (1, 2, 4, 7, 8)
"""Exit statuses of testlib: right; wrong answer, wrong format, surplus output, points, missing output. 3 is a fault of
the tests, and others are none of a checker."""


def by_number(status: int, printed: bytes) -> bool | None:
    """Return the verdict of a checker that prints 1 or 0 as its last word; None if it gives none.

    A share of 1 is no pass. A checker that ends with an error has not accepted anything, but may have rejected.
    """
    number = _last_number(printed)
    if number is None or not 0 <= number <= 1 or (number == 1 and status != 0):
        return None
    return number == 1


def by_status(status: int, printed: bytes) -> bool | None:
    """Return the verdict of a checker for testlib by its exit status; None if it gives none."""
    if status == ACCEPTED:
        return None if _last_number(printed) == 0 else True
    return False if status in REJECTED else None


def _last_number(printed: bytes) -> float | None:
    """Return the last word as a number; None if it is none, or if there is no word."""
    word = (printed.decode("utf-8", "replace").split() or [""])[-1].lower()
    if word in WORDS:
        return WORDS[word]
    value = float(word) if NUMBER.fullmatch(word) else math.nan
    return value if math.isfinite(value) else None
