"""Compute the statistics of a route's rewards from counters: mean, standard deviation, histogram, parts, groups."""

from __future__ import annotations

import math
from typing import Any

from prometheus_client.utils import floatToGoString

from rewardstack_rules.status.snapshot import (
    GROUPS,
    GROUPS_WITH_SPREAD,
    MAXIMA,
    NEGATIVE,
    PART_NEGATIVE,
    PART_POSITIVE,
    PART_SAMPLES,
    POSITIVE,
    REWARDS,
    SQUARES,
    ZEROS,
    Snapshot,
)

PREFIX = "rewardstack_reward_"
DIGITS = 6
"""Number of digits after the decimal point of a mean or a standard deviation."""
NOISE = 1e-9
"""A variance of at most this share of the mean square is a rounding error, so it counts as 0."""


def by_route(counts: Snapshot) -> dict[str, Snapshot]:
    """Return the counts of each route's rewards, by route."""
    found: dict[str, Snapshot] = {}
    for key, value in counts.items():
        if key[0].startswith(PREFIX):
            found.setdefault(key[-1], {})[key] = value
    return found


def statistics(counts: Snapshot, route: str, since_start: Snapshot) -> dict[str, Any]:
    """Return the statistics of a route's rewards in a period, such as the last hour.

    Args:
        counts: the route's counts in the period; the buckets of the histogram are cumulative.
        route: name of the route.
        since_start: the route's counts since the start of the servers that run now; empty if none of these servers has
            scored a sample on the route. These counts have all buckets, even those without a reward in the period.

    Returns:
        A dict with these keys:

        - `count`: number of rewards.
        - `mean`, `std`: mean and standard deviation; None without rewards.
        - `zeros`: number of rewards that are 0.
        - `maxima`: number of rewards at the route's upper bound; None if the route has no upper bound.
        - `groups`: number of groups (samples of one prompt).
        - `groups_without_spread`: number of groups whose rewards are all equal, so that their advantages are 0.
        - `histogram`: for each bucket, its upper bound (None for infinity) and its number of rewards.
        - `parts`: the mean of each part, by the part's name.
    """
    bounds = sorted({float(key[1]) for key in (*since_start, *counts) if key[0] == REWARDS})
    buckets = [(bound, counts.get((REWARDS, floatToGoString(bound), route), 0.0)) for bound in bounds]
    count = buckets[-1][1] if buckets else 0.0
    groups, with_spread = counts.get((GROUPS, route), 0.0), counts.get((GROUPS_WITH_SPREAD, route), 0.0)
    maxima = (MAXIMA, route)
    return {
        "count": round(count),
        "mean": mean(counts, route),
        "std": _std(counts, route, count),
        "zeros": round(counts.get((ZEROS, route), 0.0)),
        "maxima": round(counts.get(maxima, 0.0)) if maxima in since_start or maxima in counts else None,
        "groups": round(groups),
        "groups_without_spread": round(max(0.0, groups - with_spread)),
        "histogram": _histogram(buckets),
        "parts": _parts(counts),
    }


def mean(counts: Snapshot, route: str) -> float | None:
    """Return the mean of a route's rewards; None if there are none."""
    count = counts.get((REWARDS, "+Inf", route), 0.0)
    return round(_sum(counts, route) / count, DIGITS) if count else None


def _sum(counts: Snapshot, route: str) -> float:
    """Return the sum of a route's rewards; counters only grow, so negative rewards have a sum of their own."""
    return counts.get((POSITIVE, route), 0.0) - counts.get((NEGATIVE, route), 0.0)


def _std(counts: Snapshot, route: str, count: float) -> float | None:
    if not count:
        return None
    mean_square = counts.get((SQUARES, route), 0.0) / count
    variance = mean_square - (_sum(counts, route) / count) ** 2
    return round(math.sqrt(variance), DIGITS) if variance > NOISE * mean_square else 0.0


def _histogram(buckets: list[tuple[float, float]]) -> list[tuple[float | None, int]]:
    """Return the number of rewards in each bucket, from cumulative counts.

    After a counter's reset, a bucket's count may be below the count of the next lower bucket; the bucket then counts as
    empty.
    """
    below, found = 0.0, []
    for bound, cumulative in buckets:
        found.append((None if math.isinf(bound) else bound, round(max(0.0, cumulative - below))))
        below = max(below, cumulative)
    return found


def _parts(counts: Snapshot) -> dict[str, float]:
    """Return the mean of each part of a route's rewards."""
    found = {}
    for _, part, route in sorted(key for key in counts if key[0] == PART_SAMPLES):
        total = counts.get((PART_POSITIVE, part, route), 0.0) - counts.get((PART_NEGATIVE, part, route), 0.0)
        found[part] = round(total / counts[PART_SAMPLES, part, route], DIGITS)
    return found
