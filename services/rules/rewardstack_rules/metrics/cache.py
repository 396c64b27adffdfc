"""How the result cache does: its Redis is asked when it is wanted, and tells the same to every server that uses it."""

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
"""Seconds that the cache has, as for a score (`rewardstack.cache.link.WAIT`)."""


class CacheCollector(Collector):
    """One Redis that holds results.

    Args:
        url: of it.
    """

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(
            url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT, retry=Retry(NoBackoff(), 0)
        )

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it asks the cache nothing."""
        return []

    def collect(self) -> Iterable[Metric]:
        """How it does at this moment; only that it is away where it does not answer, which the pipeline logs itself."""
        try:
            info: Mapping[str, Any] = {**self._redis.info("memory"), **self._redis.info("stats")}
        except (RedisError, OSError):
            info = {}
        yield GaugeMetricFamily("rewardstack_cache_up", "Whether the result cache answers.", float(bool(info)))
        if info:
            yield from _metrics(info)


def _metrics(info: Mapping[str, Any]) -> Iterable[Metric]:
    """https://redis.io/docs/latest/commands/info/"""
    yield GaugeMetricFamily("rewardstack_cache_bytes", "Memory that the result cache uses.", info["used_memory"])
    text = "Memory that it may use; 0 for no limit."
    yield GaugeMetricFamily("rewardstack_cache_limit_bytes", text, info["maxmemory"])
    text = "Entries that went to make room for others."
    yield CounterMetricFamily("rewardstack_cache_evicted", text, info["evicted_keys"])
