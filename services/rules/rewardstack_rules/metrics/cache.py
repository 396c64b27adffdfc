"""Metrics of the result cache, which each scrape reads from Redis. Servers that share a cache report equal values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import redis
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector
from redis.backoff import NoBackoff
from redis.exceptions import RedisError
from redis.retry import Retry

TIMEOUT = 1.0
"""Timeout of a command to the cache, in seconds. Scoring has the same timeout (`rewardstack.cache.link.TIMEOUT`)."""


class CacheCollector(Collector):
    """Collects the metrics of a result cache.

    Args:
        url: URL of the cache's Redis.
    """

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=Retry(NoBackoff(), 0)
        )

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registration does not query the cache."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield the current metrics. If the cache does not answer, yield only `rewardstack_cache_up`, with value 0."""
        try:
            info: Mapping[str, Any] = {**self._redis.info("memory"), **self._redis.info("stats")}
        except (RedisError, OSError):
            info = {}
        yield GaugeMetricFamily("rewardstack_cache_up", "Whether the result cache answers.", float(bool(info)))
        if info:
            yield from _metrics(info)


def _metrics(info: Mapping[str, Any]) -> Iterable[Metric]:
    """Yield metrics from a reply to INFO (https://redis.io/docs/latest/commands/info/)."""
    yield GaugeMetricFamily("rewardstack_cache_bytes", "Memory that the result cache uses.", info["used_memory"])
    text = "Memory that the result cache may use; 0 for no limit."
    yield GaugeMetricFamily("rewardstack_cache_limit_bytes", text, info["maxmemory"])
    text = "Entries that were evicted."
    yield CounterMetricFamily("rewardstack_cache_evicted", text, info["evicted_keys"])
