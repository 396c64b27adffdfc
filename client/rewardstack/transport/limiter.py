"""Concurrency limit and circuit breaker of one endpoint: additive increase, multiplicative decrease (AIMD).

The limit starts at `FIRST_LIMIT`. Until the first failure, it rises by one with each success, and doubles every
`GROWTH_SECONDS` while all slots are taken; it never exceeds the ceiling. A slow server thus soon gets many requests.
A server that refuses excess requests gets few of them, because its first refusal comes before the limit doubles.

An overload reply (`message.LIMITING`) halves the limit, but at most once per round trip. If even fewer requests are
still in flight, the limit falls to their number. Successes then raise the limit by one request per round trip.

Three failures in a row open the circuit: the endpoint is paused with exponential backoff, and then gets a single
request. An endpoint that refuses all requests in flight is paused in the same way. After a success, which closes the
circuit, the limit doubles every round trip, as in TCP's slow start, until the next overload reply. An outage therefore
costs a few requests, not one retry per sample.
"""

from __future__ import annotations

import math
import random
import time

from rewardstack.transport import timing


def backoff(first: float, maximum: float, times: int) -> float:
    """Return a random pause in seconds: 50 % to 100 % of `first * 2**min(times, 10)`, which is limited to `maximum`."""
    return min(first * 2.0 ** min(times, 10), maximum) * random.uniform(0.5, 1.0)


class Limiter:
    """Limits the requests to one endpoint.

    Attributes:
        paused_until: end of the last pause, on `time.monotonic()`; 0 for none.
        pauses: number of pauses since the last success.
        grows_at: when the limit may double, on `time.monotonic()`. Infinity for never; 0 until all slots are first
            taken.

    Args:
        ceiling: maximum number of requests in flight, the upper bound of the limit.
    """

    def __init__(self, ceiling: int) -> None:
        self.paused_until = 0.0
        self.pauses = 0
        self._ceiling = ceiling
        self._limit = float(min(ceiling, timing.FIRST_LIMIT))
        self.grows_at = 0.0 if self._limit < ceiling else math.inf
        self._slow_start_until = float(ceiling)
        self._reduced_at = 0.0
        self._failures = self._overloads = 0

    @property
    def is_open(self) -> bool:
        """Whether the circuit is open: no request is sent during the pause, and a single request after it."""
        return self._failures >= timing.FAILURES_TO_OPEN

    @property
    def is_available(self) -> bool:
        """Whether the circuit is closed and the endpoint is not paused."""
        return self._failures < timing.FAILURES_TO_OPEN and time.monotonic() >= self.paused_until

    @property
    def limit(self) -> int:
        """The current maximum number of requests in flight."""
        return int(self._limit)

    def lower_limit(self, requests: int) -> None:
        """Lower the limit to `requests`; successes raise it again."""
        self.grows_at = math.inf
        self._limit = min(self._limit, float(requests))
        self._slow_start_until = min(self._slow_start_until, float(requests))

    def admits(self, in_flight: int) -> bool:
        """Return whether one more request may be sent now."""
        if in_flight + 1 > self._limit and not self._grow():
            return False
        return not self.paused_until or time.monotonic() >= self.paused_until

    def _grow(self) -> bool:
        """Double a limit whose slots are all taken, at most every `GROWTH_SECONDS`; return whether it was doubled."""
        if self.grows_at == math.inf:
            return False
        now = time.monotonic()
        if now < self.grows_at:
            return False
        has_waited = self.grows_at > 0
        if has_waited:
            self._limit = min(2 * self._limit, float(self._ceiling))
        self.grows_at = now + timing.GROWTH_SECONDS if self._limit < self._ceiling else math.inf
        return has_waited

    def record_success(self) -> None:
        """Record a success: close the circuit and raise the limit."""
        self._failures = self._overloads = self.pauses = 0
        step = 1.0 if self._limit < self._slow_start_until else 1.0 / self._limit
        self._limit = min(self._limit + step, float(self._ceiling))

    def record_overload(self, sent_at: float, in_flight: int, retry_after: float, *, ejects: bool = False) -> None:
        """Record an overload reply: lower the limit.

        Args:
            sent_at: when the request was sent, on `time.monotonic()`.
            in_flight: number of requests that are still in flight.
            retry_after: seconds in the Retry-After header; 0 for none.
            ejects: whether other endpoints are available, so that `OVERLOADS_TO_OPEN` overload replies in a row open
                the circuit.
        """
        now = time.monotonic()
        self.grows_at = math.inf
        self._overloads += 1
        if ejects and self._overloads >= timing.OVERLOADS_TO_OPEN:
            self.record_failure(immediately=True, ejects=True)
        else:
            self._reduce_limit(sent_at, in_flight, now)
        if retry_after > 0:
            self.paused_until = max(self.paused_until, now + min(retry_after, timing.RETRY_AFTER_MAX))

    def _reduce_limit(self, sent_at: float, in_flight: int, now: float) -> None:
        self._failures = 0
        if sent_at >= self._reduced_at:
            self._limit /= 2
            self._reduced_at = now
        self._limit = max(1.0, min(self._limit, float(in_flight)))
        self._slow_start_until = max(1.0, self._limit)
        if in_flight == 0:
            self._slow_start_until = float(self._ceiling)
            self._pause(ejects=False)

    def record_failure(self, *, immediately: bool = False, ejects: bool = False) -> None:
        """Record a failure; the third in a row opens the circuit.

        Args:
            immediately: whether to open the circuit now, without waiting for a third failure.
            ejects: whether other endpoints are available, so that pauses may be longer.
        """
        self.grows_at = math.inf
        self._failures = timing.FAILURES_TO_OPEN if immediately else self._failures + 1
        if self.is_open:
            self._limit = 1.0
            self._slow_start_until = float(self._ceiling)
            self._pause(ejects=ejects)

    def resume(self) -> None:
        """End the pause after a successful probe."""
        self.paused_until = 0.0

    def _pause(self, *, ejects: bool) -> None:
        now = time.monotonic()
        if now < self.paused_until:
            return
        first, maximum = timing.BACKOFF_FIRST, timing.BACKOFF_MAX
        if ejects:
            first, maximum = timing.EJECTION_FIRST, timing.EJECTION_MAX
        self.paused_until = now + backoff(first, maximum, self.pauses)
        self.pauses += 1
