"""Count rewards by route: their distribution, their parts, and groups in which all rewards are equal.

All metrics are counters that only grow, so that Prometheus and the status page can compute differences over time and
sums over processes. prometheus_client allows one set of buckets per metric; here, each route has a histogram with its
own buckets, and all histograms have the same name.
"""

from __future__ import annotations

import logging
import math
import os
from bisect import bisect_left
from collections import Counter as Counts
from collections.abc import Iterable, Mapping, Sequence
from functools import cache

from prometheus_client import REGISTRY, Counter, Histogram, Metric
from prometheus_client.registry import Collector

from rewardstack_rules.metrics.batch import Rewards
from rewardstack_rules.metrics.groups import Groups

STEPS = (0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0)
UNBOUNDED_BUCKETS = (*(-step for step in reversed(STEPS)), 0.0, *STEPS)
"""Upper bounds of the buckets of a route whose rewards have neither a minimum nor a maximum.

If the rewards have only a minimum, the bounds below it are omitted, and the minimum itself is added as a bound. The
same applies to a maximum and the bounds above it.
"""
BUCKETS = 10
"""Number of equally wide buckets if rewards have a minimum and a maximum. One more bucket counts the minimum itself."""
MAX_COUNTED_REWARD = 10_000.0
"""Rewards are clipped to ± this value before they are summed, so that the sum of their squares stays precise."""
TEXT = "Rewards (status ok or fallback, after shaping)"
HISTOGRAM = "rewardstack_reward"

log = logging.getLogger(__name__)


def _counter(name: str, text: str, *labels: str) -> Counter:
    return Counter(f"{HISTOGRAM}_{name}_total", text, ["route", *labels])


POSITIVE = _counter("positive", "Sum of the rewards above 0.")
NEGATIVE = _counter("negative", "Sum of the rewards below 0, as a positive number.")
SQUARES = _counter("squares", "Sum of the squares of the rewards, for their standard deviation.")
ZEROS = _counter("zeros", "Rewards that are 0.")
MAXIMA = _counter("maxima", "Rewards equal to the upper bound of the route; absent if the route has no upper bound.")
GROUPS = _counter("groups", "Groups of at least two samples of the same prompt.")
GROUPS_WITH_SPREAD = _counter("groups_with_spread", "Groups whose rewards differ; GRPO learns nothing from the others.")
PART_SAMPLES = _counter("part_samples", "Samples with a value of this part of the reward.", "part")
PART_POSITIVE = _counter("part_positive", "Sum of the part's values above 0.", "part")
PART_NEGATIVE = _counter("part_negative", "Sum of the part's values below 0, as a positive number.", "part")


def bucket_bounds(bounds: tuple[float, float]) -> tuple[float, ...]:
    """Return the upper bounds of a route's buckets. A finite range is divided into `BUCKETS` equal parts.

    For an infinite range, see `UNBOUNDED_BUCKETS`.
    """
    low, high = bounds
    if math.isinf(low) or math.isinf(high):
        ends = (end for end in bounds if math.isfinite(end))
        return tuple(sorted({*(step for step in UNBOUNDED_BUCKETS if low <= step <= high), *ends}))
    return tuple(sorted({round(low + (high - low) * part / BUCKETS, 12) for part in range(BUCKETS + 1)}))


class _Histogram(Histogram):
    """A histogram that counts equal values with a single write."""

    def observe_all(self, values: Iterable[float]) -> None:
        for value, count in Counts(values).items():
            self._sum.inc(value * count)
            self._buckets[bisect_left(self._upper_bounds, value)].inc(count)


class _Histograms(Collector):
    """The histograms of all routes as one metric.

    If there is a metrics directory, `metrics.scrape` reads the files in it and does not use this collector.
    """

    def __init__(self) -> None:
        self.routes: dict[str, _Histogram] = {}
        self._children: dict[str, _Histogram] = {}

    def describe(self) -> Iterable[Metric]:
        return []

    def collect(self) -> Iterable[Metric]:
        found = Metric(HISTOGRAM, TEXT, "histogram")
        for histogram in self.routes.copy().values():
            for metric in histogram.collect():
                found.samples += metric.samples
        return [found] if found.samples else []

    def of(self, route: str, bounds: tuple[float, float]) -> _Histogram:
        known = self._children.get(route)
        if known is None:
            self.routes[route] = _Histogram(HISTOGRAM, TEXT, ["route"], buckets=bucket_bounds(bounds), registry=None)
            known = self._children[route] = self.routes[route].labels(route)
        return known


_histograms = _Histograms()
REGISTRY.register(_histograms)


@cache
def _groups() -> Groups:
    try:
        return Groups(os.environ.get("PROMETHEUS_MULTIPROC_DIR", ""))
    except OSError as error:
        log.warning("cannot open the shared table of groups, so each process counts only its own groups: %s", error)
        return Groups("")


def count_rewards(routes: Mapping[str, Rewards]) -> None:
    """Count the rewards of a batch, by route."""
    for route, rewards in routes.items():
        _count(route, rewards)
        for part, values in rewards.parts.items():
            _series(PART_SAMPLES, route, part).inc(len(values))
            _add(values, _series(PART_POSITIVE, route, part), _series(PART_NEGATIVE, route, part))
        if rewards.groups:
            started, spread = _groups().add(rewards.groups)
            if started or spread:
                _series(GROUPS, route).inc(started)
                _series(GROUPS_WITH_SPREAD, route).inc(spread)


def _count(route: str, rewards: Rewards) -> None:
    _start(route, bounded=math.isfinite(rewards.bounds[1]))
    values = [min(max(value, -MAX_COUNTED_REWARD), MAX_COUNTED_REWARD) for value in rewards.values]
    _histograms.of(route, rewards.bounds).observe_all(values)
    _add(values, _series(POSITIVE, route), _series(NEGATIVE, route))
    _series(SQUARES, route).inc(math.fsum(value * value for value in values))
    if zeros := values.count(0.0):
        _series(ZEROS, route).inc(zeros)
    high = rewards.bounds[1]
    if math.isfinite(high):
        top = high - 1e-9 * max(1.0, abs(high))  # rounding may put a weighted sum slightly below its bound
        if maxima := sum(value >= top for value in rewards.values):
            _series(MAXIMA, route).inc(maxima)


@cache
def _start(route: str, *, bounded: bool) -> None:
    """Start a route's counters at 0, so that Prometheus sees the first reward as an increase."""
    for counter in (POSITIVE, NEGATIVE, SQUARES, ZEROS, GROUPS, GROUPS_WITH_SPREAD, *([MAXIMA] if bounded else [])):
        _series(counter, route)


@cache
def _series(counter: Counter, *labels: str) -> Counter:
    """Return the series with these labels from a cache, which is faster than `labels`."""
    return counter.labels(*labels)


def _add(values: Sequence[float], positive: Counter, negative: Counter) -> None:
    for counter, sign in ((positive, 1.0), (negative, -1.0)):
        if total := math.fsum(sign * value for value in values if sign * value > 0):
            counter.inc(total)
