"""How much one endpoint gets: concurrency that rises by addition and falls by multiplication (AIMD), and pauses.

A refusal (`reply.LIMITING`) says that the server holds no more than what is still in flight, so the concurrency falls
to that, and at least by half once a wave. An endpoint that took nothing of a wave, or failed three times in a row, is
paused with exponential backoff and then tried with a single request; a success opens it again, doubling as TCP's slow
start does up to where it was refused. An outage therefore costs a handful of probes, not a retry for each sample.
"""

from __future__ import annotations

import random
import time

BACKOFF_FIRST = 0.2
BACKOFF_MOST = 5.0
"""Seconds of the first and of the longest pause; each is drawn from the upper half of its range."""
EJECTION_FIRST = 1.0
EJECTION_MOST = 30.0
"""The same of an endpoint that others can stand in for."""
RETRY_AFTER_MOST = 30.0
"""Seconds for which a server's Retry-After keeps all requests from it."""
FAILURES_TO_OPEN = 3
"""Failures in a row that open an endpoint's circuit."""
REFUSALS_TO_OPEN = 10
"""Refusals in a row that do."""


def backoff(first: float, most: float, times: int) -> float:
    """Return the seconds of a pause, doubled each time up to `most`, and drawn from the upper half of that range."""
    return min(first * 2.0 ** min(times, 10), most) * random.uniform(0.5, 1.0)


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
        self._failures = self._refusals = 0

    @property
    def is_open(self) -> bool:
        """Whether the endpoint's circuit is open: it gets nothing, and after its pause one request."""
        return self._failures >= FAILURES_TO_OPEN

    @property
    def is_available(self) -> bool:
        """Whether the endpoint gets requests as long as it has room: it is neither paused nor on trial."""
        return self._failures < FAILURES_TO_OPEN and time.monotonic() >= self.opens_at

    @property
    def limit(self) -> int:
        """Requests that the endpoint may have in flight."""
        return int(self._limit)

    def begin(self, requests: int) -> None:
        """Let no more than `requests` in flight for now; successes raise that as after a refusal."""
        self._limit = min(self._limit, float(requests))
        self._slow_start_until = min(self._slow_start_until, float(requests))

    def admits(self, in_flight: int) -> bool:
        """Whether one more request may go out now."""
        return in_flight + 1 <= self._limit and (not self.opens_at or time.monotonic() >= self.opens_at)

    def succeeded(self) -> None:
        """Note that an answer came."""
        self._failures = self._refusals = self.pauses = 0
        step = 1.0 if self._limit < self._slow_start_until else 1.0 / self._limit
        self._limit = min(self._limit + step, float(self._ceiling))

    def refused(self, sent_at: float, in_flight: int, retry_after: float, *, ejects: bool = False) -> None:
        """Note that the server is there and will not take a request now.

        Args:
            sent_at: when the refused request was sent, on `time.monotonic()`.
            in_flight: requests that it still holds.
            retry_after: seconds it asked to wait, 0 for none.
            ejects: whether refusals without a success among them open the circuit: others can stand in for it.
        """
        now = time.monotonic()
        self._refusals += 1
        if ejects and self._refusals >= REFUSALS_TO_OPEN:
            self.failed(at_once=True, ejects=True)
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

    def failed(self, *, at_once: bool = False, ejects: bool = False) -> None:
        """Note a failure that counts; the third in a row opens the circuit.

        Args:
            at_once: open it now, for the endpoint accepts requests and does not answer.
            ejects: whether others can stand in for it, so that its pauses may become long.
        """
        self._failures = FAILURES_TO_OPEN if at_once else self._failures + 1
        if self.is_open:
            self._limit = 1.0
            self._slow_start_until = float(self._ceiling)
            self._pause(*((EJECTION_FIRST, EJECTION_MOST) if ejects else (BACKOFF_FIRST, BACKOFF_MOST)))

    def resume(self) -> None:
        """End the pause: the endpoint is back, the next request shows more."""
        self.opens_at = 0.0

    def _pause(self, first: float, most: float) -> None:
        now = time.monotonic()
        if now < self.opens_at:
            return
        self.opens_at = now + backoff(first, most, self.pauses)
        self.pauses += 1
