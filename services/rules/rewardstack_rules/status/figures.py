"""Compute the figures of the status page (samples, latencies, causes, spending) from the counts of each minute."""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from prometheus_client.utils import floatToGoString

from rewardstack.cause import Cause
from rewardstack.score import STATUSES
from rewardstack_rules.metrics.counters import BUCKETS
from rewardstack_rules.status import rewards
from rewardstack_rules.status.series import MINUTES, Series
from rewardstack_rules.status.snapshot import (
    CACHE_HITS,
    CAUSES,
    MODEL_REQUESTS,
    REQUEST_SECONDS,
    REQUESTS,
    SAMPLES,
    SECONDS,
    TOKEN_REPORTS,
    TOKENS,
    Snapshot,
    total,
)

MAX_ROUTES = 100
MAX_CAUSES = 20
BOUNDS = tuple(map(floatToGoString, (*BUCKETS, math.inf)))
"""The upper bounds of histogram buckets, as Prometheus writes them."""
Record = dict[str, Any]


class Counts(NamedTuple):
    """Counts, summed over replicas.

    Args:
        first: the first minute of the last hour, as the number of minutes since 1970.
        minutes: counts of each minute of the last hour, in order.
        hour: sum of `minutes`.
        since_start: counts of the live replicas, each since its start.
    """

    first: int
    minutes: Sequence[Snapshot]
    hour: Snapshot
    since_start: Snapshot


def gather(series: Sequence[Series], living: Sequence[Series], now: int) -> Counts:
    """Sum the counts of replicas.

    Args:
        series: snapshots of each replica.
        living: snapshots of each live replica.
        now: the last minute, as the number of minutes since 1970.
    """
    minutes = [total(parts) for parts in zip(*(each.increases(now) for each in series), strict=True)]
    return Counts(now - MINUTES + 1, minutes, total(minutes), total(each.latest for each in living))


def routes(counts: Counts) -> list[Record]:
    """Return a record for each of at most `MAX_ROUTES` routes, the busiest of the last hour first."""
    busy = {key[1]: 0.0 for key in counts.since_start if key[0] == SAMPLES}
    for (name, *labels), value in counts.hour.items():
        if name == SAMPLES:
            busy[labels[0]] = busy.get(labels[0], 0.0) + value
    names = sorted(busy, key=lambda name: (-busy[name], name))[:MAX_ROUTES]
    hour, since_start = rewards.by_route(counts.hour), rewards.by_route(counts.since_start)
    records = [_route(name, counts) for name in names]
    for name, record in zip(names, records, strict=True):
        own = since_start.get(name, {})
        record["rewards"] = {
            "hour": rewards.statistics(hour.get(name, {}), name, own),
            "total": rewards.statistics(own, name, own),
        }
    return records


def _route(name: str, counts: Counts) -> Record:
    found = _samples(counts, lambda snapshot: _of_route(snapshot, name))
    found["minutes"]["p95_s"] = [latencies(snapshot, SECONDS, name)["p95"] for snapshot in counts.minutes]
    found["minutes"]["reward"] = [rewards.mean(snapshot, name) for snapshot in counts.minutes]
    return {"route": name, **found, "latency_s": latencies(counts.hour, SECONDS, name)}


def samples(counts: Counts) -> Record:
    """Return the numbers of samples of all routes together (`_samples`)."""
    return _samples(counts, _of_all)


def _samples(counts: Counts, read: Callable[[Snapshot], dict[str, int]]) -> Record:
    """Return the numbers of samples by status: in the last hour, since the start, and in each minute.

    Also return how many scores were cached, in the last hour and since the start.

    Args:
        counts: counts of all routes.
        read: returns the numbers in a snapshot, either of one route or of all routes.
    """
    hour, since_start = read(counts.hour), read(counts.since_start)
    minutes = [read(snapshot) for snapshot in counts.minutes]
    return {
        "hour": {status: hour[status] for status in STATUSES},
        "total": {status: since_start[status] for status in STATUSES},
        "cached": {"hour": hour[CACHE_HITS], "total": since_start[CACHE_HITS]},
        "minutes": {status: [snapshot[status] for snapshot in minutes] for status in STATUSES},
    }


def _of_route(counts: Snapshot, name: str) -> dict[str, int]:
    samples_by_status = {str(status): _count(counts, SAMPLES, name, status) for status in STATUSES}
    return {CACHE_HITS: _count(counts, CACHE_HITS, name), **samples_by_status}


def _of_all(counts: Snapshot) -> dict[str, int]:
    found = dict.fromkeys((*STATUSES, CACHE_HITS), 0.0)
    for (name, *labels), value in counts.items():
        if name == SAMPLES and labels[1] in found:
            found[labels[1]] += value
        elif name == CACHE_HITS:
            found[CACHE_HITS] += value
    return {name: round(value) for name, value in found.items()}


def _count(counts: Snapshot, *key: str) -> int:
    return round(counts.get(key, 0.0))


def endpoints(counts: Counts, quiet: Container[str]) -> list[Record]:
    """Return a record for each requested path, the busiest of the last hour first.

    Args:
        counts: counts of all endpoints.
        quiet: paths to omit, because they are polled.
    """
    found: dict[str, Record] = {}
    for name, *labels in {**counts.hour, **counts.since_start}:
        if name == REQUESTS and labels[1] not in quiet:
            code, endpoint = labels
            new: Record = {"endpoint": endpoint, "hour": {}, "total": {}}
            record = found.setdefault(endpoint, new)
            record["total"][code] = _count(counts.since_start, REQUESTS, code, endpoint)
            record["hour"][code] = _count(counts.hour, REQUESTS, code, endpoint)
    for endpoint, record in found.items():
        record["latency_s"] = latencies(counts.hour, REQUEST_SECONDS, endpoint)
    return sorted(found.values(), key=lambda record: (-sum(record["hour"].values()), record["endpoint"]))


def causes(counts: Counts) -> list[Record]:
    """Return at most `MAX_CAUSES` causes of a status other than `ok` in the last hour, the latest first."""
    last: dict[tuple[str, ...], int] = {}
    for at, minute in enumerate(counts.minutes):
        last |= {key[1:]: at for key in minute if key[0] == CAUSES}
    found = [
        {
            "cause": (known := Cause.read(cause) or Cause.OTHER).value,
            "description": known.description,
            "route": route,
            "status": status,
            "hour": _count(counts.hour, CAUSES, cause, route, status),
            "last_minute": 60 * (counts.first + at),
        }
        for (cause, route, status), at in last.items()
    ]
    return sorted(found, key=itemgetter("last_minute", "hour"), reverse=True)[:MAX_CAUSES]


def spending(counts: Counts) -> list[Record]:
    """Return the requests and tokens of each route that uses models."""
    names = sorted({key[1] for key in (*counts.since_start, *counts.hour) if key[0] == MODEL_REQUESTS})
    return [
        {"route": name, "hour": _spent(counts.hour, name), "total": _spent(counts.since_start, name)} for name in names
    ]


def _spent(counts: Snapshot, name: str) -> dict[str, int]:
    sent = _count(counts, MODEL_REQUESTS, name)
    return {
        "requests": sent,
        "prompt_tokens": _count(counts, TOKENS, "prompt", name),
        "completion_tokens": _count(counts, TOKENS, "completion", name),
        "uncounted": max(0, sent - _count(counts, TOKEN_REPORTS, name)),
    }


def latencies(counts: Snapshot, name: str, label: str) -> dict[str, float | None]:
    """Return the median and the 95th percentile of a histogram, in seconds; None for both if it is empty.

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
        buckets: pairs of a bucket's upper bound and the number of values up to it, in order; the last bound is
            infinite.
        part: the quantile, from 0 to 1.

    Returns:
        The quantile, interpolated linearly within its bucket; the last finite bound if the quantile is in the bucket
        with the infinite bound; None if there are no values.
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
