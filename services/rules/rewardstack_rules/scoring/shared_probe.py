"""Share the result of a probe among many callers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class SharedProbe:
    """Runs a probe in one thread at a time and caches its result; thread-safe.

    Args:
        probe: returns the result; may block.
        seconds: age, in seconds, at which the cached result expires.
    """

    def __init__(self, probe: Callable[[], bool], seconds: float) -> None:
        self._probe = probe
        self._seconds = seconds
        self._probing = threading.Lock()
        self._result: tuple[bool, float] | None = None

    def get(self) -> bool:
        """Return the latest result. If it has expired, run the probe first.

        While another thread runs the probe, return the expired result, or wait if there is no result yet.
        """
        latest = self._result
        if self._probing.acquire(blocking=latest is None):
            try:
                latest = self._result
                if latest is None or time.monotonic() - latest[1] >= self._seconds:
                    latest = self._result = (self._probe(), time.monotonic())
            finally:
                self._probing.release()
        assert latest is not None
        return latest[0]
