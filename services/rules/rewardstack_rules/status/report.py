"""Create the report for `GET /v1/status` and the status page. A report is cached for `REPORT_SECONDS`."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from prometheus_client.registry import Collector

from rewardstack.core.addresses import shown_url
from rewardstack_rules import __version__
from rewardstack_rules.status import figures
from rewardstack_rules.status.recorder import Recorder, Replica
from rewardstack_rules.status.snapshot import Key, numbers

REPORT_SECONDS = 1.0
"""Seconds for which a report is cached."""
CHECK_SECONDS = 10.0
"""Seconds between health checks of model servers (judges, reward models, embedding servers)."""
FIRST_CHECK_SECONDS = 2.5
"""Maximum seconds for which a report waits for the first health check."""
NOT_SHARED = "REWARD_CACHE_URL is not set, so these are the figures of this server alone"

log = logging.getLogger(__name__)

T = TypeVar("T")
Record = dict[str, Any]


class ServiceHealth(Protocol):
    """The health of a service at one address."""

    def _asdict(self) -> Record: ...


class CachedValue(Generic[T]):
    """Caches a value. While one thread renews it, other threads get the old value; if there is none yet, they wait.

    Args:
        compute: computes the value.
        seconds: seconds for which the value is cached.
    """

    def __init__(self, compute: Callable[[], T], seconds: float) -> None:
        self._compute = compute
        self._seconds = seconds
        self._lock = threading.Lock()
        self._value: tuple[T] | None = None
        self._expiry = 0.0

    def get(self) -> T:
        """Return the value; raise what `compute` raises."""
        value = self._value
        if value is not None and time.monotonic() < self._expiry:
            return value[0]
        if not self._lock.acquire(blocking=value is None):
            return value[0]  # type: ignore[index]
        try:
            if self._value is None or time.monotonic() >= self._expiry:
                self._value = (self._compute(),)
                self._expiry = time.monotonic() + self._seconds
            return self._value[0]
        finally:
            self._lock.release()


class HealthChecks:
    """Checks the health of services in a background thread, so that a hanging service does not delay reports.

    Args:
        check: checks all services, and returns their health.
    """

    def __init__(self, check: Callable[[], Sequence[ServiceHealth]]) -> None:
        self._check = check
        self._is_known = threading.Event()
        self._lock = threading.Lock()
        self._next = 0.0
        self._latest: list[Record] = []

    def latest(self) -> list[Record]:
        """Return the last known health, and start a check if one is due. Before the first check ends, wait for it.

        If the first check has not ended after `FIRST_CHECK_SECONDS`, return an empty list.
        """
        with self._lock:
            is_due = time.monotonic() >= self._next
            if is_due:
                self._next = time.monotonic() + CHECK_SECONDS
        if is_due:
            threading.Thread(target=self._run, name="health checks", daemon=True).start()
        self._is_known.wait(FIRST_CHECK_SECONDS)
        return self._latest

    def _run(self) -> None:
        try:
            self._latest = [health._asdict() for health in self._check()]
        except Exception:
            log.exception("cannot check the health of judges and embedding servers")
        finally:
            self._is_known.set()


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a report.

    Args:
        recorder: records the counts of all replicas.
        external: collector of the metrics of isolated processes, cache and jobs.
        check_services: checks the health of judges, reward models and embedding servers.
        run_limits: limits of a run's requests and tokens, by name of the setting.
        cache_url: URL of the result cache's Redis; empty for none.
        queue_url: URL of the queue's Redis; empty for none.
        quiet: paths to omit, because they are polled.
    """

    recorder: Recorder
    external: Collector
    check_services: Callable[[], Sequence[ServiceHealth]]
    run_limits: Mapping[str, int]
    cache_url: str
    queue_url: str
    quiet: Container[str]


class Reporter:
    """Creates reports; thread-safe.

    Args:
        sources: the sources of the reports.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._health_checks = HealthChecks(sources.check_services)
        self._report_cache = CachedValue(self._report, REPORT_SECONDS)

    def report(self) -> Record:
        """Return a report, at most `REPORT_SECONDS` seconds old."""
        return self._report_cache.get()

    def _report(self) -> Record:
        sources, now = self._sources, time.time()
        replicas = sources.recorder.replicas()
        present = _present(replicas)
        living = [replica.series for replica in present if replica.is_up is not False]
        counts = figures.gather([replica.series for replica in replicas], living, int(now // 60))
        gauges = dict(numbers(sources.external))
        return {
            "version": __version__,
            "at": round(now, 3),
            "scope": self._scope(replicas, present),
            "services": [*self._services(present, gauges), *self._health_checks.latest()],
            "first_minute": 60 * counts.first,
            "samples": figures.samples(counts),
            "routes": figures.routes(counts),
            "causes": figures.causes(counts),
            "endpoints": figures.endpoints(counts, sources.quiet),
            "spending": {"routes": figures.spending(counts), "caps": dict(sources.run_limits)},
            "verifiers": _with_prefix(gauges, "rewardstack_verifier_"),
            "cache": _with_prefix(gauges, "rewardstack_cache_"),
            "jobs": _with_prefix(gauges, ("rewardstack_job", "rewardstack_queue_")),
        }

    def _scope(self, replicas: Sequence[Replica], present: Sequence[Replica]) -> Record:
        recorder = self._sources.recorder
        down = (
            f"the cache (REWARD_CACHE_URL) does not answer ({recorder.redis_error}): "
            "other servers' figures are old or missing"
        )
        return {
            "shared": recorder.is_shared,
            "note": NOT_SHARED if not recorder.is_shared else down if recorder.redis_error else "",
            "since": round(min(replica.series.started for replica in replicas)),
            "replicas": [
                {
                    "name": replica.name,
                    "up": replica.is_up,
                    "asked": replica.is_own,
                    "silent_s": round(replica.silent_seconds, 1),
                }
                for replica in present
            ],
        }

    def _services(self, present: Sequence[Replica], gauges: Mapping[Key, float]) -> list[Record]:
        found = [
            _service(
                "reward server",
                replica.name,
                replica.is_up,
                "" if replica.is_up else f"silent for {replica.silent_seconds:.0f} s",
            )
            for replica in present
        ]
        answers = (
            ("verifiers", "", "rewardstack_verifier_up"),
            ("cache", self._sources.cache_url, "rewardstack_cache_up"),
        )
        for name, url, gauge in (*answers, ("queue", self._sources.queue_url, "rewardstack_queue_up")):
            if (gauge,) in gauges:
                up = bool(gauges[gauge,])
                found.append(_service(name, shown_url(url), up, "" if up else "it does not answer"))
        if self._sources.queue_url:
            found.append(_workers(gauges.get(("rewardstack_job_workers",))))
        return found


def _present(replicas: Sequence[Replica]) -> list[Replica]:
    """Return the latest replica of each name (host and address); omit replicas that have shut down cleanly."""
    latest: dict[str, Replica] = {}
    for replica in sorted(replicas, key=lambda replica: replica.series.started):
        latest[replica.name] = replica
    return sorted(
        (replica for replica in latest.values() if not replica.has_left),
        key=lambda replica: (not replica.is_own, replica.name),
    )


def _workers(count: float | None) -> Record:
    """Return the health of workers.

    Args:
        count: number of workers with a recent heartbeat; None if the queue does not answer.
    """
    if count is None:
        return _service("workers", "", None, "")
    return _service("workers", f"{count:.0f} alive", count > 0, "" if count else "no worker runs, so jobs wait")


def _service(service: str, address: str, up: bool | None, problem: str) -> Record:
    return {"service": service, "address": address, "up": up, "model": "", "problem": problem}


def _with_prefix(gauges: Mapping[Key, float], prefix: str | tuple[str, ...]) -> Record:
    """Return the values of the metrics whose names have a prefix, by name.

    For a metric with a label, return a dict instead of a value: the metric's values by label value.
    """
    found: Record = {}
    for (name, *labels), value in gauges.items():
        if name.startswith(prefix):
            number = int(value) if value == int(value) else round(value, 3)
            if labels:
                found.setdefault(name, {})[labels[0]] = number
            else:
                found[name] = number
    return found
