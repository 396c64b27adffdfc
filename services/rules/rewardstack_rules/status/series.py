"""`Series`: one replica's snapshots, one per minute, and the counts of each minute of the last hour."""

from __future__ import annotations

import threading

from rewardstack_rules.status.snapshot import Snapshot, increase

MINUTES = 60
"""Number of minutes that are reported."""
KEPT = MINUTES + 4
"""Number of minutes whose snapshots are kept: one before the first reported minute, and some for clock skew."""


class Series:
    """Snapshots of a replica, by minute; thread-safe. Minutes are numbered from 1970.

    A later snapshot of the same minute replaces the earlier one.

    Args:
        began: time when the replica began to count from 0, in seconds since 1970.
    """

    def __init__(self, began: float) -> None:
        self.began = began
        self._taken: dict[int, Snapshot] = {int(began // 60) - 1: {}}
        self._closed: dict[int, Snapshot] = {}
        """Computed counts, by minute, of minutes before the last snapshot."""
        self._lock = threading.Lock()

    @property
    def last(self) -> int:
        """The minute of the latest snapshot; 0 if there is none."""
        return max(self._taken, default=0)

    @property
    def latest(self) -> Snapshot:
        """The latest snapshot."""
        return self._taken.get(self.last, {})

    def put(self, minute: int, snapshot: Snapshot) -> None:
        """Store a snapshot; snapshots may arrive out of order."""
        with self._lock:
            self._taken[minute] = snapshot
            for changed in [one for one in self._closed if one >= minute]:
                del self._closed[changed]
            for old in [one for one in self._taken if one <= self.last - KEPT]:
                del self._taken[old]
                self._closed.pop(old, None)

    def increases(self, now: int) -> list[Snapshot]:
        """Return the counts of each of the last `MINUTES`, the earliest first; empty for a minute without a snapshot.

        Args:
            now: the last minute.
        """
        with self._lock:
            return [self._increase(minute) for minute in range(now - MINUTES + 1, now + 1)]

    def _increase(self, minute: int) -> Snapshot:
        if minute not in self._taken:
            return {}
        if minute not in self._closed:
            before = max((one for one in self._taken if one < minute), default=None)
            grown = {} if before is None else increase(self._taken[minute], self._taken[before])
            if minute == self.last:
                return grown
            self._closed[minute] = grown
        return self._closed[minute]
