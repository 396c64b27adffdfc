"""What is counted of jobs: it stands in the queue's Redis, where all workers count, and is read when it is wanted."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rewardstack.errors import ServiceError
from rewardstack.score import STATUSES
from rewardstack_rules.jobs.delivery import Delivery
from rewardstack_rules.jobs.keys import COUNTS, OPEN, STARTED, WORKERS
from rewardstack_rules.jobs.link import connect, reaching, reading

COUNTERS = {
    "rewardstack_jobs": (
        "Jobs, by what happened to them.",
        "event",
        "jobs_",
        ("submitted", "finished", "failed", "canceled"),
    ),
    "rewardstack_job_chunks": (
        "Chunks of jobs: committed; committed before by another attempt; begun again; scored for a job that had ended.",
        "event",
        "chunks_",
        ("committed", "duplicate", "retried", "dropped"),
    ),
    "rewardstack_job_items": ("Samples of jobs, by how it ended.", "status", "items_", STATUSES),
}
"""Each counter with its help, its label, the beginning of its fields in `COUNTS`, and what its label can be."""

TIMEOUT = 2.0
"""Seconds that the queue has: a scrape that waits longer would tell nothing at all."""

log = logging.getLogger(__name__)


class JobsCollector(Collector):
    """The counts of one queue. Every reward server on it tells the same: take one of them, not their sum.

    Args:
        url: of the queue's Redis.
    """

    def __init__(self, url: str) -> None:
        self._redis = connect(url, retries=0, timeout=TIMEOUT)
        self._delivery = Delivery(self._redis)

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it asks the queue nothing."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The counts of this moment; only that the queue is away where it does not answer."""
        try:
            with reaching(), reading():
                found = [*self._gauges(), *self._counters()]
        except ServiceError as error:
            log.warning("jobs are not counted: %s", error)
            found = []
        yield GaugeMetricFamily("rewardstack_queue_up", "Whether the queue answers.", float(bool(found)))
        yield from found

    def _gauges(self) -> Iterable[Metric]:
        total, running = self._redis.hlen(OPEN), self._redis.scard(STARTED)
        jobs = GaugeMetricFamily("rewardstack_jobs_open", "Jobs that have not ended, by status.", labels=["status"])
        jobs.add_metric(["running"], running)
        jobs.add_metric(["queued"], max(0, total - running))
        yield jobs
        waiting = self._delivery.count()
        yield GaugeMetricFamily("rewardstack_queue_chunks", "Chunks that no worker has taken yet.", waiting)
        oldest = self._delivery.longest_wait()
        yield GaugeMetricFamily("rewardstack_queue_oldest_seconds", "How long the first of them has waited.", oldest)
        workers = self._redis.zcard(WORKERS)
        yield GaugeMetricFamily("rewardstack_job_workers", "Workers that were heard of lately.", workers)

    def _counters(self) -> Iterable[Metric]:
        counts = {name.decode(): float(value) for name, value in self._redis.hgetall(COUNTS).items()}
        for name, (text, label, prefix, values) in COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=[label])
            for value in values:
                family.add_metric([value], counts.get(prefix + value, 0.0))
            yield family
