"""The report for `GET /v1/status` and the status page; a report is cached for `FRESH` seconds."""

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

FRESH = 1.0
"""Seconds for which a report is cached."""
ASKED = 10.0
"""Seconds between health checks of judges and embedding servers."""
FIRST = 2.5
"""Maximum seconds that reports wait for the first health check to finish."""
NOT_SHARED = "REWARD_CACHE_URL is not set, so these are the figures of this server alone"

log = logging.getLogger(__name__)

T = TypeVar("T")
Record = dict[str, Any]


class Service(Protocol):
    """The health of one address of a service."""

    def _asdict(self) -> Record: ...


class Kept(Generic[T]):
    """Caches a value; while one thread renews it, others get the old value.

    Args:
        make: computes the value.
        seconds: seconds for which the value is cached.
    """

    def __init__(self, make: Callable[[], T], seconds: float) -> None:
        self._make = make
        self._seconds = seconds
        self._lock = threading.Lock()
        self._made: tuple[T] | None = None
        self._until = 0.0

    def get(self) -> T:
        """Return the value; raise what `make` raises."""
        made = self._made
        if made is not None and time.monotonic() < self._until:
            return made[0]
        if not self._lock.acquire(blocking=made is None):
            return made[0]  # type: ignore[index]
        try:
            if self._made is None or time.monotonic() >= self._until:
                self._made = (self._make(),)
                self._until = time.monotonic() + self._seconds
            return self._made[0]
        finally:
            self._lock.release()


class Asked:
    """Checks the health of services in a background thread, so that a hanging service does not delay reports.

    Args:
        ask: checks all services, and returns their health.
    """

    def __init__(self, ask: Callable[[], Sequence[Service]]) -> None:
        self._ask = ask
        self._known = threading.Event()
        self._lock = threading.Lock()
        self._next = 0.0
        self._found: list[Record] = []

    def found(self) -> list[Record]:
        """Return the last known health; start a check if it is due."""
        with self._lock:
            due = time.monotonic() >= self._next
            if due:
                self._next = time.monotonic() + ASKED
        if due:
            threading.Thread(target=self._look, name="standing", daemon=True).start()
        self._known.wait(FIRST)
        return self._found

    def _look(self) -> None:
        try:
            self._found = [one._asdict() for one in self._ask()]
        except Exception:
            log.exception("cannot check the health of judges and embedding servers")
        finally:
            self._known.set()


@dataclass(frozen=True, slots=True)
class Sources:
    """The sources of a report.

    Args:
        recorder: records the counts of all replicas.
        external: collector of the metrics of isolated processes, cache and jobs.
        ask: checks the health of judges and embedding servers.
        caps: limits of requests and tokens of a run, by setting.
        cache_url: URL of the result cache's Redis; empty for none.
        queue_url: URL of the queue's Redis; empty for none.
        quiet: polled paths, which are omitted.
    """

    recorder: Recorder
    external: Collector
    ask: Callable[[], Sequence[Service]]
    caps: Mapping[str, int]
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
        self._asked = Asked(sources.ask)
        self._kept = Kept(self._report, FRESH)

    def report(self) -> Record:
        """Return a report, at most `FRESH` seconds old."""
        return self._kept.get()

    def leave(self) -> None:
        """Deregister this server, so that other servers do not report it as down."""
        self._sources.recorder.leave()

    def _report(self) -> Record:
        sources, now = self._sources, time.time()
        replicas = sources.recorder.replicas()
        present = _present(replicas)
        living = [one.series for one in present if one.lives is not False]
        counts = figures.gather([one.series for one in replicas], living, int(now // 60))
        gauges = dict(numbers(sources.external))
        return {
            "version": __version__,
            "at": round(now, 3),
            "scope": self._scope(replicas, present),
            "services": [*self._services(present, gauges), *self._asked.found()],
            "first_minute": 60 * counts.first,
            "samples": figures.samples(counts),
            "routes": figures.routes(counts),
            "causes": figures.causes(counts),
            "endpoints": figures.endpoints(counts, sources.quiet),
            "spending": {"routes": figures.spending(counts), "caps": dict(sources.caps)},
            "verifiers": _with_prefix(gauges, "rewardstack_verifier_"),
            "cache": _with_prefix(gauges, "rewardstack_cache_"),
            "jobs": _with_prefix(gauges, ("rewardstack_job", "rewardstack_queue_")),
        }

    def _scope(self, replicas: Sequence[Replica], present: Sequence[Replica]) -> Record:
        recorder = self._sources.recorder
        away = (
            f"the cache (REWARD_CACHE_URL) does not answer ({recorder.away}): other servers' figures are old or missing"
        )
        return {
            "shared": recorder.shared,
            "note": NOT_SHARED if not recorder.shared else away if recorder.away else "",
            "since": round(min(one.series.began for one in replicas)),
            "replicas": [
                {"name": one.name, "up": one.lives, "asked": one.own, "silent_s": round(one.silent, 1)}
                for one in present
            ],
        }

    def _services(self, present: Sequence[Replica], gauges: Mapping[Key, float]) -> list[Record]:
        found = [
            _service("reward server", one.name, one.lives, "" if one.lives else f"silent for {one.silent:.0f} s")
            for one in present
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
    """Return the latest replica of each name (host and address), unless it has shut down cleanly."""
    latest: dict[str, Replica] = {}
    for one in sorted(replicas, key=lambda one: one.series.began):
        latest[one.name] = one
    return sorted((one for one in latest.values() if not one.left), key=lambda one: (not one.own, one.name))


def _workers(count: float | None) -> Record:
    """Return the health of workers; `count` is the number of recent heartbeats, None if the queue does not answer."""
    if count is None:
        return _service("workers", "", None, "")
    return _service("workers", f"{count:.0f} alive", count > 0, "" if count else "no worker runs, so jobs wait")


def _service(service: str, address: str, up: bool | None, problem: str) -> Record:
    return {"service": service, "address": address, "up": up, "model": "", "problem": problem}


def _with_prefix(gauges: Mapping[Key, float], prefix: str | tuple[str, ...]) -> Record:
    """Return the numbers of metrics whose names have a prefix, by name, and by the value of a label if there is one."""
    found: Record = {}
    for (name, *labels), value in gauges.items():
        if name.startswith(prefix):
            number = int(value) if value == int(value) else round(value, 3)
            if labels:
                found.setdefault(name, {})[labels[0]] = number
            else:
                found[name] = number
    return found
