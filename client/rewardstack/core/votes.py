"""Several values as one, and how far they agree: the votes of a judge, the parts of a majority."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

DECIMALS = 3
"""To which values are rounded before they are counted."""


def majority(values: Sequence[float]) -> float:
    """The most frequent of at least one value, the mean of them where several are."""
    return statistics.fmean(statistics.multimode(round(value, DECIMALS) for value in values))


def agreement(values: Sequence[float], asked: int) -> float:
    """The share of votes, from 0 to 1, that gave the most frequent value.

    Args:
        values: of those that gave one; at least one.
        asked: how many votes were asked for.
    """
    return max(Counter(round(value, DECIMALS) for value in values).values()) / asked


def combine(values: Sequence[float], how: str) -> float:
    """Return one value from at least one: their `mean`, `median`, or `majority`."""
    if how == "median":
        return statistics.median(values)
    return majority(values) if how == "majority" else statistics.fmean(values)
