"""All that the page tells, as `GET /v1/status` gives it; made at most once in `FRESH` seconds, however many look."""

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
"""Seconds for which a report is given again."""
ASKED = 10.0
"""Seconds after which judges and embedding servers are asked again whether they are up."""
FIRST = 2.5
"""Seconds that the first report waits for them."""
NOT_SHARED = "REWARD_CACHE_URL is not set, so these are the figures of this server alone"

log = logging.getLogger(__name__)

T = TypeVar("T")
Record = dict[str, Any]


class Service(Protocol):
    """How one address of a service stands."""

    def _asdict(self) -> Record: ...


class Kept(Generic[T]):
    """Something that is made anew when it is wanted and old; who meets its making is given the one before.

    Args:
        make: makes it.
        seconds: for which it is given again.
    """

    def __init__(self, make: Callable[[], T], seconds: float) -> None:
        self._make = make
        self._seconds = seconds
        self._lock = threading.Lock()
        self._made: tuple[T] | None = None
        self._until = 0.0

    def get(self) -> T:
        """It; raises what its making raises."""
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
    """How the services stand: asked in a thread of its own, so that one that hangs holds up no report.

    Args:
        ask: asks them all.
    """

    def __init__(self, ask: Callable[[], Sequence[Service]]) -> None:
        self._ask = ask
        self._known = threading.Event()
        self._lock = threading.Lock()
        self._next = 0.0
        self._found: list[Record] = []

    def found(self) -> list[Record]:
        """What they said last."""
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
            log.exception("how judges and embedding servers stand is not known")
        finally:
            self._known.set()


@dataclass(frozen=True, slots=True)
class Sources:
    """Where a report comes from.

    Args:
        recorder: of what is counted.
        elsewhere: what is counted elsewhere: of verifiers, cache and jobs.
        ask: asks judges and embedding servers how they stand.
        caps: what a run may spend, by the setting.
        cache_url: of the result cache; empty for none.
        queue_url: of the jobs; empty for none.
        quiet: paths that are asked all the time.
    """

    recorder: Recorder
    elsewhere: Collector
    ask: Callable[[], Sequence[Service]]
    caps: Mapping[str, int]
    cache_url: str
    queue_url: str
    quiet: Container[str]


class Reporter:
    """Makes reports; for any thread.

    Args:
        sources: of them.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._asked = Asked(sources.ask)
        self._kept = Kept(self._report, FRESH)

    def report(self) -> Record:
        """The report of this moment, or of the last second."""
        return self._kept.get()

    def leave(self) -> None:
        """Tells other servers that this one ends."""
        self._sources.recorder.leave()

    def _report(self) -> Record:
        sources, now = self._sources, time.time()
        replicas = sources.recorder.replicas()
        present = _present(replicas)
        living = [one.series for one in present if one.lives is not False]
        counts = figures.gather([one.series for one in replicas], living, int(now // 60))
        gauges = dict(numbers(sources.elsewhere))
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
            "verifiers": _told(gauges, "rewardstack_verifier_"),
            "cache": _told(gauges, "rewardstack_cache_"),
            "jobs": _told(gauges, ("rewardstack_job", "rewardstack_queue_")),
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
    """Of each place the one that began last, if it did not end in order: those that live, and those that are missed."""
    latest: dict[str, Replica] = {}
    for one in sorted(replicas, key=lambda one: one.series.began):
        latest[one.name] = one
    return sorted((one for one in latest.values() if not one.left), key=lambda one: (not one.own, one.name))


def _workers(count: float | None) -> Record:
    """How workers stand of which so many were heard; None where the queue, which hears of them, does not answer."""
    if count is None:
        return _service("workers", "", None, "")
    return _service("workers", f"{count:.0f} heard of", count > 0, "" if count else "jobs wait for one")


def _service(service: str, address: str, up: bool | None, problem: str) -> Record:
    return {"service": service, "address": address, "up": up, "model": "", "problem": problem}


def _told(gauges: Mapping[Key, float], prefix: str | tuple[str, ...]) -> Record:
    """The numbers whose names begin so, by name, and by the value of the label where there is one."""
    found: Record = {}
    for (name, *labels), value in gauges.items():
        if name.startswith(prefix):
            number = int(value) if value == int(value) else round(value, 3)
            if labels:
                found.setdefault(name, {})[labels[0]] = number
            else:
                found[name] = number
    return found
