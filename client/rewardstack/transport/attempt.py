"""One attempt to have a request answered: while anyone has the patience, with a second one where it is stuck.

A gateway passes some requests to a server that hangs while others are answered. What waits far longer than any other
took, though answers came in the meantime, is sent once more; the first answer counts.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from rewardstack.core.deadline import Patience
from rewardstack.errors import DeadlineError, ServiceError

OnceMore = Callable[[], asyncio.Task[bytes] | None]
"""Sends a request another time; None where there is no place for it."""

LEAST = 2.0
"""Seconds that every request may take before it counts as stuck."""
SOON = 0.5
"""Seconds after which one looks again at a request of which nothing can be said yet."""
FACTOR = 2.0
"""How much longer than the slowest of late a stuck request has waited."""
DECAY = 0.99
"""Factor by which each answer makes the slowest one of late fade."""


class Pace:
    """The time that answers took of late."""

    def __init__(self) -> None:
        self._slowest = 0.0
        self._answered_at = 0.0

    def answered(self, sent_at: float) -> None:
        """A request that was sent at `sent_at`, on `time.monotonic()`, was answered."""
        self._answered_at = time.monotonic()
        self._slowest = max(self._answered_at - sent_at, self._slowest * DECAY)

    def stuck_in(self, sent_at: float) -> float:
        """Seconds until a request that was sent at `sent_at` counts as stuck, if then it still waits; 0 if it does now.

        Where nothing was answered since it was sent, all wait alike: one looks again later.
        """
        now = time.monotonic()
        if self._answered_at <= sent_at:
            return max(SOON, sent_at + LEAST - now)
        return max(0.0, sent_at + max(LEAST, FACTOR * self._slowest) - now)


class Attempt:
    """A request that the current task waits for, until an answer comes, or one of these interrupts it: nobody has the
    patience any more, the endpoint hangs, another attempt has brought the answer.

    It needs no task of its own, which halves what a request costs beside the HTTP client's work.

    Args:
        cause: says why no answer has come, as far as that is known.
        patience: of all who wait for it.
        pace: of the service.
        once_more: starts a second attempt; None where this one is to stay the only one.
    """

    __slots__ = ("_cause", "_error", "_once_more", "_pace", "_patience", "_reply", "_second", "_task", "sent_at")

    def __init__(self, cause: Callable[[], str], patience: Patience, pace: Pace, once_more: OnceMore | None) -> None:
        self.sent_at = time.monotonic()
        self._cause = cause
        self._error: ServiceError | None = None
        self._reply: bytes | None = None
        self._patience = patience
        self._pace = pace
        self._once_more = once_more
        self._second: asyncio.Task[bytes] | None = None
        self._task = asyncio.current_task()

    def look(self) -> float:
        """Interrupts the attempt, or sends it once more, where it is time to; gives the seconds until the next look."""
        left = self._patience.left()
        if left <= 0:
            allowed = round(self._patience.deadline.allowed, 2)
            self.interrupt(DeadlineError(f"no answer within {allowed:g} s; {self._cause()}"))
            return SOON
        if self._once_more is None or self._second is not None:
            return left
        stuck_in = self._pace.stuck_in(self.sent_at)
        if stuck_in > 0:
            return min(left, stuck_in)
        self._second = self._once_more()
        if self._second is None:
            return min(left, SOON)
        self._second.add_done_callback(self._answered)
        return left

    def _answered(self, second: asyncio.Task[bytes]) -> None:
        if second.cancelled() or second.exception() is not None:
            return
        if self._second is not None and self._error is None:
            self._reply = second.result()
            self._cancel()

    def interrupt(self, error: ServiceError) -> None:
        """Ends the attempt with `error`, unless it is ending already."""
        if self._error is None and self._reply is None:
            self._error = error
            self._cancel()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()

    def outcome(self) -> bytes | None:
        """The other attempt's answer, once this one was cancelled; None where someone else cancelled it.

        Raises:
            ServiceError: why it was interrupted.
        """
        if self._error is None and self._reply is None:
            return None
        if self._task is not None and sys.version_info >= (3, 11) and self._task.uncancel() > 0:
            return None
        if self._error is not None:
            raise self._error from None
        return self._reply

    def end(self, *, replied: bool) -> None:
        """Notes that it has ended, with a reply to what was asked or otherwise; the second attempt ends with it."""
        if replied:
            self._pace.answered(self.sent_at)
        second, self._second = self._second, None
        if second is not None:
            second.cancel()
