"""Aggregation and agreement of several values: the votes of a judge, the parts of a majority."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

DECIMALS = 3
"""Decimal places to which values are rounded before counting."""


def majority(values: Sequence[float]) -> float:
    """Return the most frequent of at least one value; the mean of the most frequent values if there are several."""
    return statistics.fmean(statistics.multimode(round(value, DECIMALS) for value in values))


def agreement(values: Sequence[float], asked: int) -> float:
    """Return the share of votes, from 0 to 1, with the most frequent value.

    Args:
        values: the values of the votes that have one; not empty.
        asked: number of votes that were requested.
    """
    return max(Counter(round(value, DECIMALS) for value in values).values()) / asked


def combine(values: Sequence[float], how: str) -> float:
    """Return the `mean`, `median` or `majority` of at least one value."""
    if how == "median":
        return statistics.median(values)
    return majority(values) if how == "majority" else statistics.fmean(values)
