"""How much one endpoint gets: concurrency that rises by addition and falls by multiplication, and pauses.

A refusal (`http.OVERLOADED`) says that the server holds no more than what is still in flight, so the concurrency falls
to that, and at least by half once a wave. An endpoint that took nothing of a wave, or cannot be reached, is paused with
exponential backoff and then tried with a single request; a success opens it again, doubling as TCP's slow start does
up to where it was refused. An outage therefore costs a handful of probes, not a retry for each sample.
"""

from __future__ import annotations

import random
import time

BACKOFF_FIRST = 0.2
BACKOFF_MOST = 5.0
"""Seconds of the first and of the longest pause; each is drawn from the upper half of its range."""
RETRY_AFTER_MOST = 30.0
"""Seconds that a server's Retry-After is believed."""
FAILURES_TO_OPEN = 3
"""Failed connections in a row that open an endpoint's circuit."""


class Limiter:
    """Admits requests to one endpoint.

    Attributes `opens_at` (on `time.monotonic()`) and `pauses` say when the last pause ends, and how many there were
    since the endpoint took anything.

    Args:
        ceiling: most requests in flight.
    """

    def __init__(self, ceiling: int) -> None:
        self.opens_at = 0.0
        self.pauses = 0
        self._ceiling = ceiling
        self._limit = float(ceiling)
        self._slow_start_until = float(ceiling)
        self._cut_at = 0.0
        self._failures = 0

    @property
    def circuit_open(self) -> bool:
        """Whether the endpoint counts as out of reach."""
        return self._failures >= FAILURES_TO_OPEN

    @property
    def limit(self) -> int:
        """Requests that the endpoint may have in flight."""
        return int(self._limit)

    def begin(self, requests: int) -> None:
        """Lets no more than `requests` in flight for now; successes raise that as after a refusal."""
        self._limit = min(self._limit, float(requests))
        self._slow_start_until = min(self._slow_start_until, float(requests))

    def admits(self, in_flight: int) -> bool:
        """Whether one more request may go out now."""
        return in_flight < self.limit and time.monotonic() >= self.opens_at

    def succeeded(self) -> None:
        """Notes that an answer came."""
        self._failures = self.pauses = 0
        step = 1.0 if self._limit < self._slow_start_until else 1.0 / self._limit
        self._limit = min(self._limit + step, float(self._ceiling))

    def refused(self, sent_at: float, in_flight: int, retry_after: float) -> None:
        """Notes that the server is there and will not take a request now.

        Args:
            sent_at: when the refused request was sent, on `time.monotonic()`.
            in_flight: requests that it still holds.
            retry_after: seconds it asked to wait, 0 for none.
        """
        now = time.monotonic()
        self._failures = 0
        if sent_at >= self._cut_at:
            self._limit /= 2
            self._cut_at = now
        self._limit = max(1.0, min(self._limit, float(in_flight)))
        self._slow_start_until = max(1.0, self._limit)
        if in_flight == 0:
            self._slow_start_until = float(self._ceiling)
            self._pause()
        if retry_after > 0:
            self.opens_at = max(self.opens_at, now + min(retry_after, RETRY_AFTER_MOST))

    def unreachable(self, *, hangs: bool = False) -> None:
        """Notes that a connection failed or broke, or (`hangs`) that the endpoint accepts and does not answer."""
        self._failures = FAILURES_TO_OPEN if hangs else self._failures + 1
        if self.circuit_open:
            self._limit = 1.0
            self._slow_start_until = float(self._ceiling)
            self._pause()

    def resume(self) -> None:
        """Notes that the endpoint, which was out of reach, is back: the pause is over, the next request shows more."""
        self.opens_at = 0.0

    def _pause(self) -> None:
        now = time.monotonic()
        if now < self.opens_at:
            return
        longest = min(BACKOFF_FIRST * 2.0 ** min(self.pauses, 10), BACKOFF_MOST)
        self.opens_at = now + longest * random.uniform(0.5, 1.0)
        self.pauses += 1
