"""One attempt to have a request answered: while anyone has the patience, with a second one where it is stuck."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

from rewardstack.deadline import SharedDeadline
from rewardstack.errors import DeadlineError
from rewardstack.transport.pace import Pace

SOON = 0.5
"""Seconds after which a second attempt is tried again that found no free place."""


class Patience:
    """How long one attempt may take: others with more time may join while it runs.

    Args:
        deadline: of all who wait.
        since: when the call was first sent, or sent again after the service had made progress.
    """

    __slots__ = ("_since", "deadline")

    def __init__(self, deadline: SharedDeadline, since: float) -> None:
        self.deadline = deadline
        self._since = since

    def left(self) -> float:
        """Seconds, negative once it is over."""
        return min(self._since + self.deadline.timeout, self.deadline.limit_at) - time.monotonic()


class Watch:
    """Cancels an attempt for which nobody has the patience any more, or whose answer another one has brought.

    Args:
        attempt: under way.
        patience: of all who wait for it.
        pace: of the service; None where the attempt stays the only one.
        once_more: starts a second attempt, None where there is no place for one.
    """

    __slots__ = ("_attempt", "_impatient", "_once_more", "_pace", "_patience", "_second", "_sent_at", "_timer", "reply")

    def __init__(
        self,
        attempt: asyncio.Task[bytes],
        patience: Patience,
        pace: Pace | None = None,
        once_more: Callable[[], asyncio.Task[bytes] | None] | None = None,
    ) -> None:
        self.reply: bytes | None = None
        self._attempt = attempt
        self._patience = patience
        self._pace = pace
        self._once_more = once_more
        self._second: asyncio.Task[bytes] | None = None
        self._impatient = False
        self._sent_at = time.monotonic()
        self._timer = self._set(patience.left() if pace is None else min(patience.left(), pace.stuck_in(self._sent_at)))

    def _set(self, seconds: float) -> asyncio.TimerHandle:
        return asyncio.get_running_loop().call_later(seconds, self._ring)

    def _ring(self) -> None:
        left = self._patience.left()
        if left <= 0:
            self._impatient = True
            self._attempt.cancel()
            return
        if self._pace is not None and self._once_more is not None and self._second is None:
            wait = self._pace.stuck_in(self._sent_at)
            left = min(left, wait or SOON)
            if not wait and (second := self._once_more()) is not None:
                self._second = second
                second.add_done_callback(self._answered)
        self._timer = self._set(left)

    def _answered(self, second: asyncio.Task[Any]) -> None:
        if not second.cancelled() and second.exception() is None and not self._attempt.done():
            self.reply = second.result()
            self._attempt.cancel()

    def check(self, url: str) -> None:
        """Raises DeadlineError if it was impatience that ended the attempt."""
        if self._impatient:
            raise DeadlineError(f"{url}: no answer within {self._patience.deadline.timeout:g} s") from None

    def stop(self) -> None:
        """The attempt has ended."""
        self._timer.cancel()
        if self._second is not None:
            self._second.cancel()
