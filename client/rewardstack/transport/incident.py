"""What keeps an endpoint from taking requests, from the first failure to the next answer; one that lasts is logged."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable

from rewardstack.errors import OverloadError, RefusedError, UnreachableError

SAID_AFTER = 3.0
"""Seconds that somebody has waited when the log says why: what is over sooner nobody need know."""

log = logging.getLogger(__name__)


class Incident:
    """Begins with the first error that is noted, and anew with the first after it was `over`.

    Its attribute `error` is the last one noted, None while there is no incident; `away_since` and `refusing_since`, on
    `time.monotonic()`, say since when there was nothing but failed connections and silence, or refused connections
    alone: infinity where there was something else.

    Args:
        is_awaited: whether anyone waits for the endpoint's service.
    """

    def __init__(self, is_awaited: Callable[[], bool]) -> None:
        self.error: OverloadError | UnreachableError | None = None
        self.away_since = self.refusing_since = math.inf
        self._is_awaited = is_awaited
        self._since = 0.0
        self._refusals = 0
        self._said = False
        self._timer: asyncio.TimerHandle | None = None

    def __str__(self) -> str:
        """The last error, and how often the server has refused."""
        times = f" ({self._refusals} times)" if self._refusals > 1 and isinstance(self.error, OverloadError) else ""
        return f"{self.error}{times}"

    def note(self, error: OverloadError | UnreachableError, since: float | None = None) -> None:
        """Notes a failure.

        Args:
            error: what failed.
            since: when that began, on `time.monotonic()`; None for now.
        """
        now = time.monotonic()
        began = now if since is None else since
        if self.error is None:
            self._since, self._refusals, self._said = began, 0, False
        self.away_since = min(self.away_since, began) if isinstance(error, UnreachableError) else math.inf
        self.refusing_since = min(self.refusing_since, began) if isinstance(error, RefusedError) else math.inf
        self.error = error
        self._refusals += isinstance(error, OverloadError)
        if not self._said and self._timer is None:
            left = max(0.0, self._since + SAID_AFTER - now)
            self._timer = asyncio.get_running_loop().call_later(left, self._say)

    def over(self) -> None:
        """Notes that the endpoint took a request."""
        if self.error is None:
            return
        self.error = None
        self.away_since = self.refusing_since = math.inf
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _say(self) -> None:
        """What nobody waits for is not said before somebody does."""
        self._timer = None
        if self.error is not None and self._is_awaited():
            self._said = True
            log.warning("%s; for %.0f s now, and tried again", self, time.monotonic() - self._since)
