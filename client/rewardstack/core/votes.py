"""Aggregate several values (the votes of a judge, or the parts of a `majority` route) and compute their agreement."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

DECIMALS = 3
"""Decimal places to which values are rounded before counting."""


def majority(values: Sequence[float]) -> float:
    """Return the most frequent value, or the mean of the most frequent values if there is a tie."""
    return statistics.fmean(statistics.multimode(round(value, DECIMALS) for value in values))


def agreement(values: Sequence[float], requested: int) -> float:
    """Return the share of the requested votes, from 0 to 1, that have the most frequent value.

    Args:
        values: the values of the votes that succeeded; not empty.
        requested: number of votes that were requested.
    """
    return max(Counter(round(value, DECIMALS) for value in values).values()) / requested


def combine(values: Sequence[float], method: str) -> float:
    """Return the `mean`, `median` or `majority` of values, which must not be empty."""
    if method == "median":
        return statistics.median(values)
    return majority(values) if method == "majority" else statistics.fmean(values)
