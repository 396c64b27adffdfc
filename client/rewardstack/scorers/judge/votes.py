"""Several verdicts on one sample as one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rewardstack.scorers.judge.options import Aggregate

DECIMALS = 3
"""To which verdicts are rounded before they are counted."""


def combine(values: Sequence[float], how: Aggregate) -> float:
    """One verdict from several.

    Args:
        values: from 0 to 1; at least one.
        how: `mean`, `median`, or `majority`: the most frequent one, the mean of them where several are.
    """
    if how == "median":
        return statistics.median(values)
    if how == "majority":
        return statistics.fmean(statistics.multimode(round(value, DECIMALS) for value in values))
    return statistics.fmean(values)
