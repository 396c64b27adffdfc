"""One replica's snapshots, one a minute: what it counted in each minute of the last hour."""

from __future__ import annotations

import threading

from rewardstack_rules.status.snapshot import Snapshot, increase

MINUTES = 60
"""That are told."""
KEPT = MINUTES + 4
"""Snapshots that are kept: one before the first minute that is told, and some for clocks that differ."""


class Series:
    """Snapshots by the minute since 1970 in which each was taken; for any thread.

    A later one of the same minute takes the place of the one before.

    Args:
        began: when the replica had counted nothing, in seconds since 1970.
    """

    def __init__(self, began: float) -> None:
        self.began = began
        self._taken: dict[int, Snapshot] = {int(began // 60) - 1: {}}
        self._closed: dict[int, Snapshot] = {}
        """What each minute brought after which another one was seen."""
        self._lock = threading.Lock()

    @property
    def last(self) -> int:
        """The minute of the latest snapshot; 0 where there is none."""
        return max(self._taken, default=0)

    @property
    def latest(self) -> Snapshot:
        """The latest snapshot."""
        return self._taken.get(self.last, {})

    def put(self, minute: int, snapshot: Snapshot) -> None:
        """Takes a snapshot; one that comes after a later one changes nothing but its own minute."""
        with self._lock:
            self._taken[minute] = snapshot
            for changed in [one for one in self._closed if one >= minute]:
                del self._closed[changed]
            for old in [one for one in self._taken if one <= self.last - KEPT]:
                del self._taken[old]
                self._closed.pop(old, None)

    def increases(self, now: int) -> list[Snapshot]:
        """What each of the last `MINUTES` brought, the earliest first; before the first snapshot nothing is known.

        Args:
            now: the minute that is the last of them.
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
