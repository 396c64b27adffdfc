"""One replica's snapshots, by minute, and the counts of each minute of the last hour."""

from __future__ import annotations

import threading

from rewardstack_rules.status.snapshot import Snapshot, increase

MINUTES = 60
"""Number of minutes that are reported."""
KEPT_MINUTES = MINUTES + 4
"""Number of minutes whose snapshots are kept: the reported minutes, the minute before them, and 3 for clock skew."""


class Series:
    """Snapshots of a replica, by minute; thread-safe. Minutes are numbered from 1970.

    A later snapshot of the same minute replaces the earlier one.

    Args:
        started: time at which the replica started to count from 0, in seconds since 1970.
    """

    def __init__(self, started: float) -> None:
        self.started = started
        self._snapshots: dict[int, Snapshot] = {int(started // 60) - 1: {}}  # so that the first minute counts from 0
        self._closed: dict[int, Snapshot] = {}
        """Cached counts by minute. The minute of the latest snapshot is not cached, because its counts may grow."""
        self._lock = threading.Lock()

    @property
    def last(self) -> int:
        """The minute of the latest snapshot; 0 if there is none."""
        return max(self._snapshots, default=0)

    @property
    def latest(self) -> Snapshot:
        """The latest snapshot."""
        return self._snapshots.get(self.last, {})

    def put(self, minute: int, snapshot: Snapshot) -> None:
        """Store a snapshot. Snapshots may arrive out of order."""
        with self._lock:
            self._snapshots[minute] = snapshot
            for changed in [known for known in self._closed if known >= minute]:
                del self._closed[changed]
            for old in [known for known in self._snapshots if known <= self.last - KEPT_MINUTES]:
                del self._snapshots[old]
                self._closed.pop(old, None)

    def increases(self, now: int) -> list[Snapshot]:
        """Return the counts of each of the last `MINUTES` minutes, the earliest first.

        A minute without a snapshot has no counts. Its samples are counted in the next minute that has a snapshot.

        Args:
            now: the last minute.
        """
        with self._lock:
            return [self._increase(minute) for minute in range(now - MINUTES + 1, now + 1)]

    def _increase(self, minute: int) -> Snapshot:
        if minute not in self._snapshots:
            return {}
        if minute not in self._closed:
            before = max((known for known in self._snapshots if known < minute), default=None)
            grown = {} if before is None else increase(self._snapshots[minute], self._snapshots[before])
            if minute == self.last:
                return grown
            self._closed[minute] = grown
        return self._closed[minute]
