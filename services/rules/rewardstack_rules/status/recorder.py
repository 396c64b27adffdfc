"""Takes a snapshot of the counts every few seconds, and shares it with other replicas, for the page's last hour."""

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
"""Seconds without a write to Redis after which a replica counts as down."""
LOCK = "recorder"
"""Name of a lock file in the metrics directory; the process that holds the lock writes for the whole server."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replica:
    """A server, with one or several processes, from its start to its end; a restarted server is another replica.

    Args:
        life: unique name: the host, the address, and the time when the replica began to count.
        own: whether the replica is this server.
        heard: time of the replica's last write, in seconds since 1970.
        series: the replica's snapshots of the last hour.
        left: whether the replica has shut down cleanly.
        reachable: whether the replica's writes can be read; False while the Redis is down.
    """

    life: str
    own: bool
    heard: float
    series: Series
    left: bool = False
    reachable: bool = True

    @property
    def name(self) -> str:
        """Host and address of the replica."""
        return self.life.rpartition(" ")[0]

    @property
    def silent(self) -> float:
        """Seconds since the replica's last write; 0 for this server."""
        return 0.0 if self.own else max(0.0, time.time() - self.heard)

    @property
    def lives(self) -> bool | None:
        """Whether the replica has written recently; None if this is unknown, because the Redis is down."""
        if self.silent < SILENCE:
            return True
        return False if self.reachable else None


class Recorder:
    """Records the last hour of this server, and reads that of the replicas that share its Redis; thread-safe.

    Args:
        address: address of this server, which distinguishes it from others on its host.
        directory: directory in which the server's processes keep their counts; empty for a single process.
        cache_url: URL of the Redis that replicas share; empty for none.
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
        """The error of the last access to the Redis; empty if it answered, or if there is no Redis."""

    def start(self) -> None:
        """Start to record in a background thread."""
        threading.Thread(target=self._run, name="status", daemon=True).start()

    @property
    def shared(self) -> bool:
        """Whether replicas share a Redis."""
        return self._ring is not None

    def replicas(self) -> list[Replica]:
        """Return this server in its current state, and the other replicas in their last known state."""
        with self._lock:
            minute, known = self._take(), {one.life: one for one in self._others}
        try:
            others, self.away = self._read_others(known, minute), ""
        except (RedisError, OSError) as error:
            others, self.away = [replace(one, reachable=False) for one in known.values()], type(error).__name__
        with self._lock:
            self._others = others
        return [Replica(self._life, own=True, heard=time.time(), series=self._own), *others]

    def leave(self) -> None:
        """Deregister this server, so that other replicas do not report it as down."""
        if self._ring is not None:
            _try(self._ring.leave)

    def _run(self) -> None:
        pause, loaded = threading.Event(), False
        while True:
            loaded = loaded or _try(self._load_own)
            pause.wait(INTERVAL)
            _try(self._record)

    def _load_own(self) -> None:
        """Load the snapshots that other processes of this server, running or ended, have written to Redis."""
        if self._ring is not None:
            written = self._ring.read({self._life: 0}, int(time.time() // 60) - 1)[self._life]
            with self._lock:
                _merge(self._own, written)

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
                _merge(one.series, written[one.life])
        return [replace(one, left=written[one.life].left) for one in found]

    def _writes(self) -> bool:
        """Return whether this process writes for its server; the first one to get the lock keeps it."""
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


def _try(step: Callable[[], None]) -> bool:
    """Run a step; log an error and return False if it fails."""
    try:
        step()
    except (RedisError, OSError) as error:
        log.info("cannot store the status page's last hour in Redis: %s", error)
    except Exception:
        log.exception("cannot record the status page's last hour")
    else:
        return True
    return False


def _merge(series: Series, written: Written) -> None:
    for minute, snapshot in written.snapshots:
        series.put(minute, snapshot)


def _began(directory: str) -> float:
    """Return when a server began to count, in seconds since 1970."""
    try:
        return (Path(directory) / BEGAN).stat().st_mtime if directory else time.time()
    except FileNotFoundError:  # gunicorn was started without this package's configuration
        return time.time()


def _number(text: str) -> float | None:
    """Parse a time, limited to a plausible range; return None if the text is not a number."""
    try:
        return min(max(0.0, float(text)), 1e11)
    except ValueError:
        return None
