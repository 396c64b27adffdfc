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
from rewardstack_rules.jobs.link import RedisClient, reaching

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
"""For each counter its help, its label, the beginning of its fields in `COUNTS`, and what its label can be."""

log = logging.getLogger(__name__)


class JobsCollector(Collector):
    """The counts of one queue. Every reward server on it tells the same: take one of them, not their sum.

    Args:
        redis: of the queue.
    """

    def __init__(self, redis: RedisClient) -> None:
        self._redis = redis
        self._delivery = Delivery(redis)

    def describe(self) -> Iterable[Metric]:
        """Nothing, so that registering it asks the queue nothing."""
        return []

    def collect(self) -> Iterable[Metric]:
        """The counts of this moment; only that the queue is away where it does not answer."""
        try:
            with reaching():
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
        waiting = self._delivery.queue.count
        yield GaugeMetricFamily("rewardstack_queue_chunks", "Chunks that no worker has taken yet.", waiting)
        workers = self._redis.zcard(WORKERS)
        yield GaugeMetricFamily("rewardstack_job_workers", "Workers that were heard of lately.", workers)

    def _counters(self) -> Iterable[Metric]:
        counts = {name.decode(): float(value) for name, value in self._redis.hgetall(COUNTS).items()}
        for name, (text, label, prefix, values) in COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=[label])
            for value in values:
                family.add_metric([value], counts.get(prefix + value, 0.0))
            yield family
