"""What is counted of the isolated processes: their supervisor keeps it, and is asked when it is wanted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rewardstack.errors import RewardstackError

log = logging.getLogger(__name__)


class IsolationCollector(Collector):
    """The isolated processes of one server, which all its processes share.

    Args:
        stats: asks for `Scheduler.stats`.
    """

    def __init__(self, stats: Callable[[], Mapping[str, int]]) -> None:
        self._stats = stats

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it starts no processes."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The counts of this moment; only that the supervisor is away where it does not answer."""
        try:
            stats: Mapping[str, int] = self._stats()
        except (RewardstackError, asyncio.TimeoutError) as error:
            log.warning("isolated processes are not counted: %s", error or "no answer in time")
            stats = {}
        yield GaugeMetricFamily("rewardstack_verifier_up", "Whether isolated processes can be had.", float(bool(stats)))
        if stats:
            yield from _gauges(stats)
            yield from _counters(stats)


def _gauges(stats: Mapping[str, int]) -> Iterable[Metric]:
    text = "Isolated processes that there are, busy or not."
    yield GaugeMetricFamily("rewardstack_verifier_processes", text, stats["children"])
    text = "Samples that an isolated process works on; those that take long have a lane of their own."
    busy = GaugeMetricFamily("rewardstack_verifier_busy", text, labels=["lane"])
    busy.add_metric(["fast"], stats["busy"] - stats["slow"])
    busy.add_metric(["slow"], stats["slow"])
    yield busy
    text = "Samples that wait for an isolated process."
    waiting = GaugeMetricFamily("rewardstack_verifier_waiting", text, labels=["lane"])
    waiting.add_metric(["fast"], stats["queued"])
    waiting.add_metric(["slow"], stats["slow_queued"])
    yield waiting


def _counters(stats: Mapping[str, int]) -> Iterable[Metric]:
    text = "Isolated processes that were killed at their deadline (timeout), or died over a sample (died)."
    killed = CounterMetricFamily("rewardstack_verifier_killed", text, labels=["reason"])
    killed.add_metric(["timeout"], stats["timeouts_total"])
    killed.add_metric(["died"], stats["killed_total"] - stats["timeouts_total"])
    yield killed
    text = "Isolated processes that were replaced after their share of work."
    yield CounterMetricFamily("rewardstack_verifier_recycled", text, stats["recycled_total"])
