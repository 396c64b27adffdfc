"""Take a snapshot of the counts every few seconds, and share it with other replicas through Redis."""

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

from rewardstack_rules.metrics.directory import START_FILE
from rewardstack_rules.status.series import Series
from rewardstack_rules.status.snapshot import take_snapshot
from rewardstack_rules.status.snapshot_store import ReplicaData, SnapshotStore

INTERVAL = 10.0
"""Seconds between two snapshots."""
SILENCE = 45.0
"""Seconds without a write to Redis after which a replica counts as down."""
LOCK = "recorder"
"""Name of a lock file in the metrics directory. The process that holds the lock writes the server's counts to Redis."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Replica:
    """A server with one or several processes, from its start to its end. A restarted server is a new replica.

    Args:
        id: unique name: the host, the address, and the time at which the replica started to count.
        is_own: whether the replica is this server.
        last_write: time of the replica's last write, in seconds since 1970.
        series: the replica's snapshots of the last hour.
        has_left: whether the replica has shut down cleanly.
        is_reachable: whether the replica's writes can be read from Redis; False while Redis is down.
    """

    id: str
    is_own: bool
    last_write: float
    series: Series
    has_left: bool = False
    is_reachable: bool = True

    @property
    def name(self) -> str:
        """Host and address of the replica."""
        return self.id.rpartition(" ")[0]

    @property
    def silent_seconds(self) -> float:
        """Seconds since the replica's last write; 0 for this server."""
        return 0.0 if self.is_own else max(0.0, time.time() - self.last_write)

    @property
    def is_up(self) -> bool | None:
        """Whether the replica has written recently; None if this is unknown because the Redis is down."""
        if self.silent_seconds < SILENCE:
            return True
        return False if self.is_reachable else None


class Recorder:
    """Records the counts of this server, and reads those of the other replicas from Redis; thread-safe.

    Args:
        address: address of this server, which distinguishes it from others on its host.
        directory: directory in which the server's processes keep their counts; empty for a single process.
        cache_url: URL of the Redis that replicas share; empty for none.
    """

    def __init__(self, address: str, directory: str, cache_url: str) -> None:
        started = _start_time(directory)
        self._id = f"{socket.gethostname()} {address} {started:.3f}"
        self._directory = directory
        self._store = SnapshotStore(cache_url, self._id) if cache_url else None
        self._own = Series(started)
        self._others: list[Replica] = []
        self._lock = threading.Lock()
        self._held: IO[str] | None = None
        self._is_logged = False
        self.redis_error = ""
        """Class name of the error of the last read from the Redis; empty if the read succeeded."""

    def start(self) -> None:
        """Start to record in a background thread."""
        threading.Thread(target=self._run, name="status", daemon=True).start()

    @property
    def is_shared(self) -> bool:
        """Whether replicas share a Redis."""
        return self._store is not None

    def replicas(self) -> list[Replica]:
        """Return this server with its current counts, and the other replicas with their last known counts."""
        with self._lock:
            minute, known = self._record_snapshot(), {replica.id: replica for replica in self._others}
        try:
            others, self.redis_error = self._read_others(known, minute), ""
        except (RedisError, OSError) as error:
            others = [replace(replica, is_reachable=False) for replica in known.values()]
            self.redis_error = type(error).__name__
        with self._lock:
            self._others = others
        return [Replica(self._id, is_own=True, last_write=time.time(), series=self._own), *others]

    def leave(self) -> None:
        """Deregister this server, so that other replicas do not report it as down."""
        if self._store is not None:
            self._log_errors(self._store.leave)

    def _run(self) -> None:
        pause, loaded = threading.Event(), False
        while True:
            loaded = loaded or self._log_errors(self._load_own)
            pause.wait(INTERVAL)
            self._log_errors(self._record)

    def _load_own(self) -> None:
        """Load the snapshots that a process of this server has written to Redis before this process started."""
        if self._store is not None:
            written = self._store.read({self._id: 0}, int(time.time() // 60) - 1)[self._id]
            with self._lock:
                _merge(self._own, written)

    def _record(self) -> None:
        with self._lock:
            minute, snapshot = self._record_snapshot(), self._own.latest
        if self._store is not None and self._writes():
            self._store.write(minute, snapshot)

    def _record_snapshot(self) -> int:
        minute = int(time.time() // 60)
        self._own.put(minute, take_snapshot(self._directory))
        return minute

    def _read_others(self, known: Mapping[str, Replica], minute: int) -> list[Replica]:
        if self._store is None:
            return []
        found = []
        for replica_id, last_write in self._store.replicas().items():
            started = _number(replica_id.rpartition(" ")[2])
            if replica_id != self._id and started is not None:
                series = known[replica_id].series if replica_id in known else Series(started)
                found.append(Replica(replica_id, is_own=False, last_write=last_write, series=series))
        written = self._store.read({replica.id: replica.series.last for replica in found}, minute)
        with self._lock:
            for replica in found:
                _merge(replica.series, written[replica.id])
        return [replace(replica, has_left=written[replica.id].has_left) for replica in found]

    def _writes(self) -> bool:
        """Return whether this process writes its server's counts to Redis.

        If the server has several processes, only the process that holds the lock `LOCK` writes them. The first process
        that calls this method gets the lock, and holds it until the process ends.
        """
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

    def _log_errors(self, step: Callable[[], None]) -> bool:
        """Run a step and return whether it succeeds. Of consecutive Redis errors, log only the first."""
        try:
            step()
        except (RedisError, OSError) as error:
            if not self._is_logged:
                why = str(error).rstrip(".") or type(error).__name__
                log.info("cannot store the status page's last hour in the Redis of REWARD_CACHE_URL: %s", why)
            self._is_logged = True
        except Exception:
            log.exception("cannot record the status page's last hour")
        else:
            self._is_logged = False
            return True
        return False


def _merge(series: Series, written: ReplicaData) -> None:
    for minute, snapshot in written.snapshots:
        series.put(minute, snapshot)


def _start_time(directory: str) -> float:
    """Return when a server started to count, in seconds since 1970."""
    try:
        return (Path(directory) / START_FILE).stat().st_mtime if directory else time.time()
    except FileNotFoundError:  # gunicorn was started without this package's configuration
        return time.time()


def _number(text: str) -> float | None:
    """Parse a time, limited to a plausible range; return None if the text is not a number."""
    try:
        return min(max(0.0, float(text)), 1e11)
    except ValueError:
        return None
