"""Limit how many requests and tokens per minute this process sends to a judge; resent requests count, too.

The time that a sample waits here does not count toward its timeout.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass

from rewardstack.core.deadline import SharedDeadline

WINDOW = 60.0
"""Length of the sliding window in seconds."""
MAX_SLEEP = 1.0
"""Maximum time until a waiting sample is checked again, in seconds.

A sample may fit into the window sooner than computed, because `RateLimit.correct` can lower the usage of other samples.
"""


@dataclass(slots=True, eq=False)
class Reservation:
    """A sample's requests and tokens: an estimate, which `RateLimit.correct` replaces with the actual usage.

    Args:
        at: when the sample's last request was sent, on `time.monotonic()`.
        requests: number of requests.
        tokens: number of tokens.
        is_counted: whether the sample is in the window, so that the sums include it.
        attempts: number of requests that were sent, and that the reservation covers.
    """

    at: float
    requests: int
    tokens: int
    is_counted: bool = True
    attempts: int = 0


class RateLimit:
    """The rate limits of one judge; belongs to one event loop.

    Args:
        requests: maximum number of requests per minute; 0 for no limit.
        tokens: maximum number of tokens per minute; 0 for no limit.
    """

    def __init__(self, requests: int, tokens: int) -> None:
        self._limits = requests, tokens
        self._window: deque[Reservation] = deque()
        self._requests, self._tokens = 0, 0  # sums of the requests and of the tokens in `_window`
        self._lock = asyncio.Lock()  # admits waiters in order

    @property
    def last_progress(self) -> float:
        """The current time.

        `SharedDeadline` thus sees progress for as long as a sample waits here, and the sample does not time out.
        """
        return time.monotonic()

    async def admit(self, requests: int, tokens: int, deadline: SharedDeadline) -> Reservation:
        """Wait until a sample may be sent; return a reservation to pass to `correct`.

        A sample that exceeds a limit on its own is sent as soon as the window is empty.

        Args:
            requests: number of requests that the sample needs.
            tokens: estimated number of tokens that the sample uses.
            deadline: deadline of the sample's batch; the time spent here does not count.
        """
        with deadline.in_queue(self):
            async with self._lock:
                while (seconds := self._seconds_to_wait(requests, tokens)) > 0:
                    await asyncio.sleep(min(seconds, MAX_SLEEP))
                reservation = Reservation(time.monotonic(), requests, tokens)
                self._add_to_sums(reservation, 1)
                self._window.append(reservation)
        deadline.restart()
        return reservation

    async def admit_attempt(self, reservation: Reservation, deadline: SharedDeadline) -> None:
        """Count a request that is about to be sent; if the reservation does not cover it, wait until it may be sent.

        Args:
            reservation: the result of `admit` for the sample.
            deadline: deadline of the sample's batch; the time spent here does not count.
        """
        if reservation.attempts >= reservation.requests:
            await self.admit(1, reservation.tokens // max(1, reservation.requests), deadline)
            return
        reservation.attempts += 1
        if reservation.is_counted:
            self._window.remove(reservation)
            self._window.append(reservation)
            reservation.at = time.monotonic()

    def correct(self, reservation: Reservation, tokens: int | None) -> None:
        """Replace a sample's estimate with its actual usage.

        Args:
            reservation: the result of `admit` for the sample.
            tokens: number of tokens that the sample used; None to keep the estimate, if not all replies report tokens.
        """
        if reservation.is_counted:
            self._add_to_sums(reservation, -1)
            reservation.requests = reservation.attempts
            reservation.tokens = reservation.tokens if tokens is None else tokens
            self._add_to_sums(reservation, 1)

    def _add_to_sums(self, reservation: Reservation, sign: int) -> None:
        reservation.is_counted = sign > 0
        self._requests += sign * reservation.requests
        self._tokens += sign * reservation.tokens

    def _seconds_to_wait(self, requests: int, tokens: int) -> float:
        """Return the seconds until a sample fits into the window; 0 if it fits now."""
        now, seconds = time.monotonic(), 0.0
        while self._window and self._window[0].at <= now - WINDOW:
            self._add_to_sums(self._window.popleft(), -1)
        max_requests, max_tokens = self._limits
        excess_requests = self._requests + requests - max_requests if max_requests else 0
        excess_tokens = self._tokens + tokens - max_tokens if max_tokens else 0
        for reservation in self._window:
            if excess_requests <= 0 and excess_tokens <= 0:
                break
            seconds = reservation.at + WINDOW - now
            excess_requests, excess_tokens = excess_requests - reservation.requests, excess_tokens - reservation.tokens
        return seconds
