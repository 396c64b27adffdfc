"""Computes the figures of the status page (samples, latencies, causes, spending) from the counts of each minute."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from prometheus_client.utils import floatToGoString

from rewardstack.score import STATUSES
from rewardstack_rules.metrics.counters import BUCKETS
from rewardstack_rules.status import rewards
from rewardstack_rules.status.series import MINUTES, Series
from rewardstack_rules.status.snapshot import (
    CACHED,
    CAUSES,
    COUNTED,
    ITEMS,
    REQUEST_SECONDS,
    REQUESTS,
    SECONDS,
    SENT,
    TOKENS,
    Snapshot,
    total,
)

MOST_ROUTES = 100
MOST_CAUSES = 20
BOUNDS = tuple(map(floatToGoString, (*BUCKETS, math.inf)))
"""The upper bounds of histogram buckets, as Prometheus writes them."""
Record = dict[str, Any]


class Counts(NamedTuple):
    """The sums of the counts of all replicas.

    Args:
        first: the first minute, as the number of minutes since 1970.
        minutes: counts of each minute of the last hour, in order.
        hour: sum of `minutes`.
        so_far: counts of live replicas since they started.
    """

    first: int
    minutes: Sequence[Snapshot]
    hour: Snapshot
    so_far: Snapshot


def gather(series: Sequence[Series], living: Sequence[Series], now: int) -> Counts:
    """Return the sums of the counts of replicas.

    Args:
        series: snapshots of each replica.
        living: snapshots of each live replica.
        now: the last minute, as the number of minutes since 1970.
    """
    minutes = [total(parts) for parts in zip(*(one.increases(now) for one in series), strict=True)]
    return Counts(now - MINUTES + 1, minutes, total(minutes), total(one.latest for one in living))


def routes(counts: Counts) -> list[Record]:
    """Return a record for each route, the busiest of the hour first; at most `MOST_ROUTES`."""
    busy = {key[1]: 0.0 for key in counts.so_far if key[0] == ITEMS}
    for (name, *labels), value in counts.hour.items():
        if name == ITEMS:
            busy[labels[0]] = busy.get(labels[0], 0.0) + value
    names = sorted(busy, key=lambda name: (-busy[name], name))[:MOST_ROUTES]
    hour, so_far = rewards.by_route(counts.hour), rewards.by_route(counts.so_far)
    found = [_route(name, counts) for name in names]
    for name, one in zip(names, found, strict=True):
        known = so_far.get(name, {})
        recent, all_time = rewards.figures(hour.get(name, {}), name, known), rewards.figures(known, name, known)
        one["rewards"] = {"hour": recent, "total": all_time}
    return found


def _route(name: str, counts: Counts) -> Record:
    found = _samples(counts, lambda one: _of_route(one, name))
    found["minutes"]["p95_s"] = [latencies(one, SECONDS, name)["p95"] for one in counts.minutes]
    found["minutes"]["reward"] = [rewards.mean(one, name) for one in counts.minutes]
    return {"route": name, **found, "latency_s": latencies(counts.hour, SECONDS, name)}


def samples(counts: Counts) -> Record:
    """Return a record for all routes together."""
    return _samples(counts, _of_all)


def _samples(counts: Counts, read: Callable[[Snapshot], dict[str, int]]) -> Record:
    """Return the numbers of samples by status, and of samples from the cache.

    Args:
        counts: counts of all routes.
        read: returns these numbers, of one route or of all, from a snapshot.
    """
    hour, so_far = read(counts.hour), read(counts.so_far)
    minutes = [read(one) for one in counts.minutes]
    return {
        "hour": {status: hour[status] for status in STATUSES},
        "total": {status: so_far[status] for status in STATUSES},
        "cached": {"hour": hour[CACHED], "total": so_far[CACHED]},
        "minutes": {status: [one[status] for one in minutes] for status in STATUSES},
    }


def _of_route(counts: Snapshot, name: str) -> dict[str, int]:
    return {CACHED: _count(counts, CACHED, name), **{str(one): _count(counts, ITEMS, name, one) for one in STATUSES}}


def _of_all(counts: Snapshot) -> dict[str, int]:
    found = dict.fromkeys((*STATUSES, CACHED), 0.0)
    for (name, *labels), value in counts.items():
        if name == ITEMS and labels[1] in found:
            found[labels[1]] += value
        elif name == CACHED:
            found[CACHED] += value
    return {name: round(value) for name, value in found.items()}


def _count(counts: Snapshot, *key: str) -> int:
    return round(counts.get(key, 0.0))


def endpoints(counts: Counts, quiet: Container[str]) -> list[Record]:
    """Return a record for each requested path, the busiest of the hour first.

    Args:
        counts: counts of all endpoints.
        quiet: polled paths, which are omitted.
    """
    found: dict[str, Record] = {}
    for name, *labels in {**counts.hour, **counts.so_far}:
        if name == REQUESTS and labels[1] not in quiet:
            code, endpoint = labels
            new: Record = {"endpoint": endpoint, "hour": {}, "total": {}}
            record = found.setdefault(endpoint, new)
            record["total"][code] = _count(counts.so_far, REQUESTS, code, endpoint)
            record["hour"][code] = _count(counts.hour, REQUESTS, code, endpoint)
    for endpoint, record in found.items():
        record["latency_s"] = latencies(counts.hour, REQUEST_SECONDS, endpoint)
    return sorted(found.values(), key=lambda one: (-sum(one["hour"].values()), one["endpoint"]))


def causes(counts: Counts) -> list[Record]:
    """Return the causes of missing scores, the latest first; at most `MOST_CAUSES`."""
    last: dict[tuple[str, ...], int] = {}
    for at, minute in enumerate(counts.minutes):
        last |= {key[1:]: at for key in minute if key[0] == CAUSES}
    found = [
        {
            "cause": cause,
            "route": route,
            "status": status,
            "hour": _count(counts.hour, CAUSES, cause, route, status),
            "last_minute": 60 * (counts.first + at),
        }
        for (cause, route, status), at in last.items()
    ]
    return sorted(found, key=itemgetter("last_minute", "hour"), reverse=True)[:MOST_CAUSES]


def spending(counts: Counts) -> list[Record]:
    """Return the requests and tokens of each route that uses models."""
    names = sorted({key[1] for key in (*counts.so_far, *counts.hour) if key[0] == SENT})
    return [{"route": name, "hour": _spent(counts.hour, name), "total": _spent(counts.so_far, name)} for name in names]


def _spent(counts: Snapshot, name: str) -> dict[str, int]:
    sent = _count(counts, SENT, name)
    return {
        "requests": sent,
        "prompt_tokens": _count(counts, TOKENS, "prompt", name),
        "completion_tokens": _count(counts, TOKENS, "completion", name),
        "uncounted": max(0, sent - _count(counts, COUNTED, name)),
    }


def latencies(counts: Snapshot, name: str, label: str) -> dict[str, float | None]:
    """Return the median and the 95th percentile of a histogram, in seconds; None if it is empty.

    Args:
        counts: a snapshot with the buckets of the histogram.
        name: name of the metric of the buckets.
        label: route or path of the histogram.
    """
    found = [counts.get((name, bound, label) if name == SECONDS else (name, label, bound), 0.0) for bound in BOUNDS]
    buckets = list(zip((*BUCKETS, math.inf), found, strict=True))
    return {"p50": quantile(buckets, 0.5), "p95": quantile(buckets, 0.95)}


def quantile(buckets: Sequence[tuple[float, float]], part: float) -> float | None:
    """Return a quantile of a histogram, as Prometheus' `histogram_quantile` does.

    Args:
        buckets: the upper bound of each bucket and the number of values up to it, in order; the last bound is infinite.
        part: the quantile, from 0 to 1.

    Returns:
        The quantile, interpolated linearly within its bucket; the last finite bound if the quantile is above it; None
        if there are no values.
    """
    count = buckets[-1][1] if buckets else 0.0
    if count <= 0:
        return None
    low, below = 0.0, 0.0
    for bound, upto in buckets:
        if upto >= part * count:
            return low if math.isinf(bound) else low + (bound - low) * (part * count - below) / (upto - below)
        low, below = bound, upto
    return low
