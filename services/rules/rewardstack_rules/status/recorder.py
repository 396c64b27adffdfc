"""Takes a snapshot every few seconds, and tells other replicas of it: what the page's last hour is made of."""

from __future__ import annotations

import fcntl
import logging
import socket
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from redis.exceptions import RedisError

from rewardstack_rules.metrics.directory import BEGAN
from rewardstack_rules.status.ring import Ring, Written
from rewardstack_rules.status.series import Series
from rewardstack_rules.status.snapshot import take

INTERVAL = 10.0
"""Seconds between two snapshots."""
SILENCE = 45.0
"""Seconds after which a replica that wrote nothing counts as gone."""
LOCK = "recorder"
"""A file beside the counts: whoever holds it writes for all processes of this server."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replica:
    """One server, of several processes or one.

    Args:
        life: its host, its address, and when it began to count; one that is started again is another.
        own: whether it is the one that was asked.
        heard: when it was last heard of, in seconds since 1970.
        series: its last hour.
        left: whether it has ended in order.
        heeded: whether it would be heard, which it is not while the Redis is away.
    """

    life: str
    own: bool
    heard: float
    series: Series
    left: bool = False
    heeded: bool = True

    @property
    def name(self) -> str:
        """Its host and address."""
        return self.life.rpartition(" ")[0]

    @property
    def silent(self) -> float:
        """Seconds since it was heard of."""
        return 0.0 if self.own else max(0.0, time.time() - self.heard)

    @property
    def lives(self) -> bool | None:
        """Whether it was heard of lately; None where it was not, and could not be."""
        if self.silent < SILENCE:
            return True
        return False if self.heeded else None


class Recorder:
    """The last hour of this server, and of those that share a Redis with it; for any thread.

    Args:
        address: of this server, by which it is told from others on its host.
        directory: where its processes count; empty where there is one.
        cache_url: the Redis in which replicas meet; empty for none.
    """

    def __init__(self, address: str, directory: str, cache_url: str) -> None:
        began = _began(directory)
        self._life = f"{socket.gethostname()} {address} {began:.3f}"
        self._directory = directory
        self._ring = Ring(cache_url, self._life) if cache_url else None
        self._own = Series(began)
        self._others: list[Replica] = []
        self._lock = threading.Lock()
        self._held: IO[str] | None = None
        self.away = ""
        """Why the Redis does not answer; empty where it does, or there is none."""

    def start(self) -> None:
        """Goes on in a thread of its own."""
        threading.Thread(target=self._run, name="status", daemon=True).start()

    @property
    def shared(self) -> bool:
        """Whether there is a Redis in which replicas meet."""
        return self._ring is not None

    def replicas(self) -> list[Replica]:
        """This server as it is now, and the others as they last said."""
        with self._lock:
            minute, known = self._take(), {one.life: one for one in self._others}
        try:
            others, self.away = self._read_others(known, minute), ""
        except (RedisError, OSError) as error:
            others, self.away = [replace(one, heeded=False) for one in known.values()], type(error).__name__
        with self._lock:
            self._others = others
        return [Replica(self._life, own=True, heard=time.time(), series=self._own), *others]

    def leave(self) -> None:
        """Tells the others that this server ends, so that it is not missed."""
        if self._ring is not None:
            _tried(self._ring.leave)

    def _run(self) -> None:
        pause, remembered = threading.Event(), False
        while True:
            remembered = remembered or _tried(self._remember)
            pause.wait(INTERVAL)
            _tried(self._record)

    def _remember(self) -> None:
        """Takes up what other processes of this server have written, one that has ended among them."""
        if self._ring is not None:
            written = self._ring.read({self._life: 0}, int(time.time() // 60) - 1)[self._life]
            with self._lock:
                _take_up(self._own, written)

    def _record(self) -> None:
        with self._lock:
            minute, snapshot = self._take(), self._own.latest
        if self._ring is not None and self._writes():
            self._ring.write(minute, snapshot)

    def _take(self) -> int:
        minute = int(time.time() // 60)
        self._own.put(minute, take(self._directory))
        return minute

    def _read_others(self, known: Mapping[str, Replica], minute: int) -> list[Replica]:
        if self._ring is None:
            return []
        found = []
        for life, heard in self._ring.replicas().items():
            began = _number(life.rpartition(" ")[2])
            if life != self._life and began is not None:
                series = known[life].series if life in known else Series(began)
                found.append(Replica(life, own=False, heard=heard, series=series))
        written = self._ring.read({one.life: one.series.last for one in found}, minute)
        with self._lock:
            for one in found:
                _take_up(one.series, written[one.life])
        return [replace(one, left=written[one.life].left) for one in found]

    def _writes(self) -> bool:
        """Whether this process is the one of its server that writes; it is for as long as it lives."""
        if not self._directory or self._held is not None:
            return True
        file = (Path(self._directory) / LOCK).open("a")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return False
        self._held = file
        return True


def _tried(step: Callable[[], None]) -> bool:
    """Whether a step could be done; the log says why it could not."""
    try:
        step()
    except (RedisError, OSError) as error:
        log.info("the status page's last hour is not kept in Redis: %s", error)
    except Exception:
        log.exception("the status page's last hour is not kept")
    else:
        return True
    return False


def _take_up(series: Series, written: Written) -> None:
    for minute, snapshot in written.snapshots:
        series.put(minute, snapshot)


def _began(directory: str) -> float:
    """When a server began to count, in seconds since 1970."""
    try:
        return (Path(directory) / BEGAN).stat().st_mtime if directory else time.time()
    except FileNotFoundError:  # gunicorn was started otherwise than by this package's configuration
        return time.time()


def _number(text: str) -> float | None:
    """The time that a text is, None where it is none."""
    try:
        return min(max(0.0, float(text)), 1e11)
    except ValueError:
        return None
