"""Snapshots of a server's counts since its start: take, subtract, add and serialize them."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from prometheus_client.registry import Collector

from rewardstack_rules.metrics.scrape import counts_registry

Key = tuple[str, ...]
"""The name of a Prometheus sample, and the values of its labels in the alphabetical order of the labels' names."""
Snapshot = dict[Key, float]

SAMPLES, CACHE_HITS, CAUSES = "rewardstack_samples_total", "rewardstack_cache_hits_total", "rewardstack_causes_total"
MODEL_REQUESTS, TOKEN_REPORTS = "rewardstack_model_requests_total", "rewardstack_model_replies_counted_total"
TOKENS, REQUESTS = "rewardstack_model_tokens_total", "rewardstack_requests_total"
SECONDS, REQUEST_SECONDS = "rewardstack_sample_duration_seconds_bucket", "rewardstack_request_duration_seconds_bucket"
REWARDS, POSITIVE, NEGATIVE = (
    "rewardstack_reward_bucket",
    "rewardstack_reward_positive_total",
    "rewardstack_reward_negative_total",
)
SQUARES, ZEROS, MAXIMA = (
    "rewardstack_reward_squares_total",
    "rewardstack_reward_zeros_total",
    "rewardstack_reward_maxima_total",
)
GROUPS, GROUPS_WITH_SPREAD = "rewardstack_reward_groups_total", "rewardstack_reward_groups_with_spread_total"
PART_SAMPLES = "rewardstack_reward_part_samples_total"
PART_POSITIVE, PART_NEGATIVE = "rewardstack_reward_part_positive_total", "rewardstack_reward_part_negative_total"
LABEL_COUNTS = {
    **dict.fromkeys((CACHE_HITS, MODEL_REQUESTS, TOKEN_REPORTS), 1),
    **dict.fromkeys((POSITIVE, NEGATIVE, SQUARES, ZEROS, MAXIMA, GROUPS, GROUPS_WITH_SPREAD), 1),
    **dict.fromkeys((SAMPLES, TOKENS, REQUESTS, SECONDS, REQUEST_SECONDS), 2),
    **dict.fromkeys((REWARDS, PART_SAMPLES, PART_POSITIVE, PART_NEGATIVE), 2),
    CAUSES: 3,
}
"""The metrics in a snapshot, each with its number of labels."""
MAX_SNAPSHOT_BYTES = 2**20
"""Maximum size of a stored snapshot, in bytes; enough for about 250 routes."""
MAX_COUNT = 2**53
"""The largest count that a stored snapshot may have. Floats represent all integers up to it, and sums stay finite."""


def numbers(collector: Collector) -> Iterable[tuple[Key, float]]:
    """Yield the key and the current value of each Prometheus sample of a collector."""
    for family in collector.collect():
        for sample in family.samples:
            yield (sample.name, *(value for _, value in sorted(sample.labels.items()))), sample.value


def take_snapshot(directory: str) -> Snapshot:
    """Return the counts that the page shows, summed over all processes of this server.

    Args:
        directory: directory in which the processes keep their counts; empty for a single process.
    """
    with counts_registry(directory) as registry:
        return {key: value for key, value in numbers(registry) if key[0] in LABEL_COUNTS}


def increase(later: Snapshot, earlier: Snapshot) -> Snapshot:
    """Return how much each count grew between two snapshots. A count that is smaller than before was reset to 0."""
    grown = {}
    for key, value in later.items():
        before = earlier.get(key, 0.0)
        if more := value - before if value >= before else value:
            grown[key] = more
    return grown


def total(snapshots: Iterable[Snapshot]) -> Snapshot:
    """Return the sums of the counts in snapshots."""
    summed: Snapshot = {}
    for snapshot in snapshots:
        for key, value in snapshot.items():
            summed[key] = summed.get(key, 0.0) + value
    return summed


def pack(minute: int, snapshot: Snapshot) -> str:
    """Return a snapshot in the format for Redis.

    Args:
        minute: the snapshot's minute, as the number of minutes since 1970.
        snapshot: the counts.
    """
    return json.dumps([minute, [[*key, value] for key, value in snapshot.items()]], separators=(",", ":"))


def unpack(data: bytes | None) -> tuple[int, Snapshot] | None:
    """Return the minute and the snapshot that `pack` wrote; None if the data is invalid or too large."""
    if data is None or len(data) > MAX_SNAPSHOT_BYTES:
        return None
    try:
        minute, rows = json.loads(data)
        return (minute, dict(map(_row, rows))) if type(minute) is int else None
    except (ValueError, TypeError, LookupError, RecursionError):
        return None


def _row(row: Any) -> tuple[Key, float]:
    *key, value = row
    is_count = type(value) in (int, float) and 0 <= value <= MAX_COUNT
    if not is_count or not all(isinstance(part, str) for part in key) or LABEL_COUNTS[key[0]] != len(key) - 1:
        raise ValueError
    return tuple(key), float(value)
