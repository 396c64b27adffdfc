"""Several verdicts on one sample as one."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from rewardstack.core.votes import majority
from rewardstack.scorers.judge.options import Aggregate


def combine(values: Sequence[float], how: Aggregate) -> float:
    """One verdict from several.

    Args:
        values: from 0 to 1; at least one.
        how: `mean`, `median`, or `majority`: the most frequent one, the mean of them where several are.
    """
    if how == "median":
        return statistics.median(values)
    if how == "majority":
        return majority(values)
    return statistics.fmean(values)
