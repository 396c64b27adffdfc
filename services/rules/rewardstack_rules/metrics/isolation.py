"""Metrics of isolated processes. Each scrape reads them from the supervisors of these processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Protocol

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rewardstack.errors import RewardstackError

log = logging.getLogger(__name__)


class Evaluator(Protocol):
    """An evaluator with isolated processes."""

    @property
    def runs_code(self) -> bool:
        """Whether some isolated processes run programs."""
        ...

    def isolation_stats(self, *, code: bool = False) -> Mapping[str, int]:
        """Return the counts of the isolated processes that run programs (`code=True`), or of all others."""
        ...


def isolation_collectors(evaluator: Evaluator) -> Iterable[Collector]:
    """Yield the collectors of an evaluator's isolated processes."""
    yield IsolationCollector(evaluator.isolation_stats, "rewardstack_verifier")
    if evaluator.runs_code:
        yield IsolationCollector(partial(evaluator.isolation_stats, code=True), "rewardstack_code")


class IsolationCollector(Collector):
    """Collects the metrics of isolated processes, which all processes of a server share.

    Args:
        stats: returns the counts of `Scheduler.stats`.
        prefix: prefix of the metric names.
    """

    def __init__(self, stats: Callable[[], Mapping[str, int]], prefix: str) -> None:
        self._stats = stats
        self._prefix = prefix

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registration starts no processes."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield the current metrics. If a supervisor does not answer, yield only `PREFIX_up` with the value 0."""
        try:
            stats: Mapping[str, int] = self._stats()
        except (RewardstackError, asyncio.TimeoutError) as error:
            log.warning("isolation metrics unavailable: %s", error or "no answer in time")
            stats = {}
        yield GaugeMetricFamily(f"{self._prefix}_up", "Whether isolated processes are available.", float(bool(stats)))
        if stats:
            yield from _gauges(self._prefix, stats)
            yield from _counters(self._prefix, stats)


def _gauges(prefix: str, stats: Mapping[str, int]) -> Iterable[Metric]:
    text = "Isolated processes, busy or idle."
    yield GaugeMetricFamily(f"{prefix}_processes", text, stats["children"])
    text = "Samples that isolated processes are scoring; slow samples have a pool of their own."
    busy = GaugeMetricFamily(f"{prefix}_busy", text, labels=["pool"])
    busy.add_metric(["fast"], stats["busy"] - stats["slow"])
    busy.add_metric(["slow"], stats["slow"])
    yield busy
    text = "Samples that wait for an isolated process."
    waiting = GaugeMetricFamily(f"{prefix}_waiting", text, labels=["pool"])
    waiting.add_metric(["fast"], stats["queued"])
    waiting.add_metric(["slow"], stats["slow_queued"])
    yield waiting


def _counters(prefix: str, stats: Mapping[str, int]) -> Iterable[Metric]:
    text = "Isolated processes that were killed at their deadline (timeout), or died during a sample (died)."
    killed = CounterMetricFamily(f"{prefix}_killed", text, labels=["reason"])
    killed.add_metric(["timeout"], stats["timeouts_total"])
    killed.add_metric(["died"], stats["killed_total"] - stats["timeouts_total"])
    yield killed
    text = "Isolated processes that were replaced after a number of samples."
    yield CounterMetricFamily(f"{prefix}_recycled", text, stats["recycled_total"])
