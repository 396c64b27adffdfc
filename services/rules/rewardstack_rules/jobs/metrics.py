"""Metrics of jobs. Servers and workers keep their counts in the queue's Redis, from which each scrape reads them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from rewardstack.errors import ServiceError
from rewardstack.score import STATUSES
from rewardstack_rules.jobs.delivery import Delivery
from rewardstack_rules.jobs.keys import COUNTS, OPEN, SILENCE, STARTED, WORKERS
from rewardstack_rules.jobs.link import connect, parse_errors, redis_errors

COUNTERS = {
    "rewardstack_jobs": (
        "Jobs, by event.",
        "event",
        "jobs_",
        ("submitted", "finished", "failed", "canceled"),
    ),
    "rewardstack_job_chunks": (
        "Chunks of jobs: `committed`, `duplicate` (already committed), `retried`, or `dropped` (the job had ended).",
        "event",
        "chunks_",
        ("committed", "duplicate", "retried", "dropped"),
    ),
    "rewardstack_job_samples": ("Samples of jobs, by status.", "status", "items_", STATUSES),
}
"""Counters by name: help text, label, prefix of the counter's fields in `COUNTS`, and values of the label."""

TIMEOUT = 2.0
"""Timeout of a command to the queue, in seconds; short, so that the whole scrape does not time out."""

log = logging.getLogger(__name__)


class JobsCollector(Collector):
    """Collects the metrics of a queue. All reward servers of a queue report the same values, so do not sum them.

    Args:
        url: URL of the queue's Redis.
    """

    def __init__(self, url: str) -> None:
        self._redis = connect(url, retries=0, timeout=TIMEOUT)
        self._delivery = Delivery(self._redis)

    def describe(self) -> Iterable[Metric]:
        """Return nothing, so that registration does not query the queue."""
        return []

    def collect(self) -> Iterable[Metric]:
        """Yield the current metrics. If the queue does not answer, yield only `rewardstack_queue_up`, with value 0."""
        try:
            with redis_errors(), parse_errors():
                found = [*self._gauges(), *self._counters()]
        except ServiceError as error:
            log.warning("job metrics unavailable: %s", error)
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
        yield GaugeMetricFamily("rewardstack_queue_chunks", "Chunks in the queue.", waiting)
        oldest = self._delivery.longest_wait()
        text = "Seconds that the oldest chunk has waited in the queue."
        yield GaugeMetricFamily("rewardstack_queue_oldest_seconds", text, oldest)
        workers = self._redis.zcount(WORKERS, self._redis.time()[0] - SILENCE, "+inf")
        yield GaugeMetricFamily("rewardstack_job_workers", "Workers with a recent heartbeat.", workers)

    def _counters(self) -> Iterable[Metric]:
        counts = {name.decode(): float(value) for name, value in self._redis.hgetall(COUNTS).items()}
        for name, (text, label, prefix, values) in COUNTERS.items():
            family = CounterMetricFamily(name, text, labels=[label])
            for value in values:
                family.add_metric([value], counts.get(prefix + value, 0.0))
            yield family
