"""Concurrency limit and circuit breaker of one endpoint: additive increase, multiplicative decrease (AIMD).

After an overload reply (`reply.LIMITING`) the limit falls to the number of requests that are still in flight, and by
at least half once per round trip. An endpoint that accepts nothing, or fails three times in a row, is paused with
exponential backoff and then tried with a single request. A success closes the circuit; the limit then doubles, as in
TCP's slow start, up to where it was refused. An outage therefore costs a few probes, not one retry per sample.
"""

from __future__ import annotations

import random
import time

BACKOFF_FIRST = 0.2
BACKOFF_MOST = 5.0
"""Seconds of the first and the longest pause; each is drawn from the upper half of its range."""
EJECTION_FIRST = 1.0
EJECTION_MOST = 30.0
"""The same if other endpoints are available."""
RETRY_AFTER_MOST = 30.0
"""Most seconds for which a server's Retry-After is honored."""
FAILURES_TO_OPEN = 3
"""Failures in a row that open the circuit."""
REFUSALS_TO_OPEN = 10
"""Overload replies in a row that open the circuit."""


def backoff(first: float, most: float, times: int) -> float:
    """Return the seconds of a pause, doubled each time up to `most`, and drawn from the upper half of that range."""
    return min(first * 2.0 ** min(times, 10), most) * random.uniform(0.5, 1.0)


class Limiter:
    """Limits the requests to one endpoint.

    Attributes `opens_at` (on `time.monotonic()`) and `pauses` are the end of the last pause, and the number of pauses
    since the last success.

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
        self._failures = self._refusals = 0

    @property
    def is_open(self) -> bool:
        """Whether the circuit is open: no requests are sent, and a single one after the pause."""
        return self._failures >= FAILURES_TO_OPEN

    @property
    def is_available(self) -> bool:
        """Whether the endpoint is neither paused nor on trial."""
        return self._failures < FAILURES_TO_OPEN and time.monotonic() >= self.opens_at

    @property
    def limit(self) -> int:
        """Most requests in flight."""
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
            in_flight: requests that are still in flight.
            retry_after: seconds of the Retry-After header, 0 for none.
            ejects: whether `REFUSALS_TO_OPEN` refusals in a row open the circuit, because others are available.
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
            immediately: open the circuit now, because the endpoint hangs.
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
