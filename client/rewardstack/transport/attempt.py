"""One attempt to have a request answered: while anyone has the patience, with a second one where it is stuck."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable

from rewardstack.core.deadline import Patience
from rewardstack.errors import DeadlineError, ServiceError
from rewardstack.transport.pace import SOON, Pace


class Attempt:
    """A request that the current task waits for, until an answer comes, or one of these interrupts it: nobody has the
    patience any more, the endpoint hangs, another attempt has brought the answer.

    It needs no task of its own, which halves what a request costs beside the HTTP client's work.

    Args:
        url: where to, for errors.
        patience: of all who wait for it.
        pace: of the service; None where the attempt stays the only one.
        once_more: starts a second attempt; its result is None where there is no place for one.
    """

    __slots__ = ("_error", "_once_more", "_pace", "_patience", "_reply", "_second", "_sent_at", "_task", "_url")

    def __init__(
        self,
        url: str,
        patience: Patience,
        pace: Pace | None = None,
        once_more: Callable[[], asyncio.Task[bytes] | None] = lambda: None,
    ) -> None:
        self._url = url
        self._error: ServiceError | None = None
        self._reply: bytes | None = None
        self._patience = patience
        self._pace = pace
        self._once_more = once_more
        self._second: asyncio.Task[bytes] | None = None
        self._sent_at = time.monotonic()
        self._task = asyncio.current_task()

    def due_in(self) -> float:
        """Seconds after which the attempt is to be looked at."""
        left = max(0.0, self._patience.left())
        if self._pace is None or self._second is not None:
            return left
        return min(left, self._pace.stuck_in(self._sent_at) or SOON)

    def look(self) -> float:
        """Interrupts the attempt, or sends it once more, where it is time to; gives the seconds until the next look."""
        if self._patience.left() <= 0:
            self.interrupt(DeadlineError(f"{self._url}: no answer within {self._patience.deadline.timeout:g} s"))
            return SOON
        if self._pace is not None and self._second is None and self._pace.stuck_in(self._sent_at) <= 0:
            self._second = self._once_more()
            if self._second is not None:
                self._second.add_done_callback(self._answered)
        return self.due_in()

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

    def stop(self) -> None:
        """Ends the second attempt, where there is one: the first has ended."""
        second, self._second = self._second, None
        if second is not None:
            second.cancel()
