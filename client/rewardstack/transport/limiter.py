"""Concurrency limit and circuit breaker of one endpoint: additive increase, multiplicative decrease (AIMD).

After an overload reply (`reply.LIMITING`) the limit falls to the number of requests that are still in flight, and by
at least half once per round trip. An endpoint that accepts nothing, or fails three times in a row, is paused with
exponential backoff and then tried with a single request. A success closes the circuit. The limit then doubles every
round trip, as in TCP's slow start, up to the last limit that was not refused. An outage therefore costs a few probes,
not one retry per sample.
"""

from __future__ import annotations

import random
import time

BACKOFF_FIRST = 0.2
BACKOFF_MOST = 5.0
"""Upper bounds, in seconds, of the first and of the longest pause; see `backoff`."""
EJECTION_FIRST = 1.0
EJECTION_MOST = 30.0
"""The same bounds if other endpoints are available."""
RETRY_AFTER_MOST = 30.0
"""Maximum seconds for which a server's Retry-After is honored."""
FAILURES_TO_OPEN = 3
"""Failures in a row that open the circuit."""
REFUSALS_TO_OPEN = 10
"""Overload replies in a row that open the circuit."""


def backoff(first: float, most: float, times: int) -> float:
    """Return the seconds of a pause: half to all of `first`, doubled `times` times but at most `most`."""
    return min(first * 2.0 ** min(times, 10), most) * random.uniform(0.5, 1.0)


class Limiter:
    """Limits the requests to one endpoint.

    Attributes:
        opens_at: end of the last pause, on `time.monotonic()`; 0 for none.
        pauses: number of pauses since the last success.

    Args:
        ceiling: maximum requests in flight, which the limit never exceeds.
    """

    def __init__(self, ceiling: int) -> None:
        self.opens_at = 0.0
        self.pauses = 0
        self._ceiling = ceiling
        self._limit = float(ceiling)
        self._slow_start_until = float(ceiling)
        self._cut_at = 0.0
        self._failures = self._refusals = 0

    @property
    def is_open(self) -> bool:
        """Whether the circuit is open: no requests are sent during the pause, and then a single one."""
        return self._failures >= FAILURES_TO_OPEN

    @property
    def is_available(self) -> bool:
        """Whether the endpoint is neither paused nor on trial."""
        return self._failures < FAILURES_TO_OPEN and time.monotonic() >= self.opens_at

    @property
    def limit(self) -> int:
        """The current maximum of requests in flight."""
        return int(self._limit)

    def begin(self, requests: int) -> None:
        """Lower the limit to `requests`; successes raise it again."""
        self._limit = min(self._limit, float(requests))
        self._slow_start_until = min(self._slow_start_until, float(requests))

    def admits(self, in_flight: int) -> bool:
        """Return whether one more request may be sent now."""
        return in_flight + 1 <= self._limit and (not self.opens_at or time.monotonic() >= self.opens_at)

    def succeeded(self) -> None:
        """Record a success: close the circuit and raise the limit."""
        self._failures = self._refusals = self.pauses = 0
        step = 1.0 if self._limit < self._slow_start_until else 1.0 / self._limit
        self._limit = min(self._limit + step, float(self._ceiling))

    def refused(self, sent_at: float, in_flight: int, retry_after: float, *, ejects: bool = False) -> None:
        """Record an overload reply: lower the limit.

        Args:
            sent_at: when the refused request was sent, on `time.monotonic()`.
            in_flight: number of requests that are still in flight.
            retry_after: seconds in the Retry-After header; 0 for none.
            ejects: whether `REFUSALS_TO_OPEN` overload replies in a row open the circuit, because other endpoints are
                available.
        """
        now = time.monotonic()
        self._refusals += 1
        if ejects and self._refusals >= REFUSALS_TO_OPEN:
            self.failed(immediately=True, ejects=True)
        else:
            self._cut(sent_at, in_flight, now)
        if retry_after > 0:
            self.opens_at = max(self.opens_at, now + min(retry_after, RETRY_AFTER_MOST))

    def _cut(self, sent_at: float, in_flight: int, now: float) -> None:
        self._failures = 0
        if sent_at >= self._cut_at:
            self._limit /= 2
            self._cut_at = now
        self._limit = max(1.0, min(self._limit, float(in_flight)))
        self._slow_start_until = max(1.0, self._limit)
        if in_flight == 0:
            self._slow_start_until = float(self._ceiling)
            self._pause(BACKOFF_FIRST, BACKOFF_MOST)

    def failed(self, *, immediately: bool = False, ejects: bool = False) -> None:
        """Record a failure; the third in a row opens the circuit.

        Args:
            immediately: whether to open the circuit now, without waiting for a third failure.
            ejects: whether pauses may be long, because other endpoints are available.
        """
        self._failures = FAILURES_TO_OPEN if immediately else self._failures + 1
        if self.is_open:
            self._limit = 1.0
            self._slow_start_until = float(self._ceiling)
            self._pause(*((EJECTION_FIRST, EJECTION_MOST) if ejects else (BACKOFF_FIRST, BACKOFF_MOST)))

    def resume(self) -> None:
        """End the pause after a successful probe."""
        self.opens_at = 0.0

    def _pause(self, first: float, most: float) -> None:
        now = time.monotonic()
        if now < self.opens_at:
            return
        self.opens_at = now + backoff(first, most, self.pauses)
        self.pauses += 1
