"""One attempt to send a request, and what all attempts of a service share: latency, retry budget, timer."""

from __future__ import annotations

import asyncio
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from rewardstack.core.deadline import AttemptTimeout
from rewardstack.errors import ServiceError
from rewardstack.transport import timing
from rewardstack.transport.message import Message


class LatencyTracker:
    """Tracks the recent latency of a service for each URL path: a completion takes longer than a list of models."""

    def __init__(self) -> None:
        self._slowest: dict[str, float] = {}
        self._answered_at = 0.0

    def record_answer(self, path: str, sent_at: float) -> None:
        """Record an answer to a request that was sent at `sent_at`, on `time.monotonic()`."""
        self._answered_at = time.monotonic()
        self._slowest[path] = max(self._answered_at - sent_at, self._slowest.get(path, 0.0) * timing.LATENCY_DECAY)

    def has_answered_since(self, moment: float) -> bool:
        """Return whether an answer came after `moment`, on `time.monotonic()`."""
        return self._answered_at > moment

    def stuck_after(self, path: str, default: float) -> float:
        """Return the seconds after which a request counts as stuck.

        Args:
            path: path of the request.
            default: the result if no request with this path was answered yet.
        """
        slowest = self._slowest.get(path)
        return max(timing.MIN_STUCK, default if slowest is None else timing.STUCK_FACTOR * slowest)


class RetryBudget:
    """Limits retries to a tenth of the load, so that retries do not overload a service that answers with errors.

    The budget starts with `RETRY_RESERVE` retries. Each request adds a tenth of a retry, up to 100 retries.
    """

    def __init__(self) -> None:
        self._tokens = timing.RETRY_RESERVE
        self._spent_at = -math.inf

    def earn(self, retries: float = timing.RETRY_SHARE) -> None:
        """Add `retries` to the budget: for a request, or to refund a hedge that was useful."""
        self._tokens = min(self._tokens + retries, timing.RETRY_RESERVE * 10)

    def spend(self, interval: float = math.inf) -> bool:
        """Take one retry from the budget; return whether the retry is allowed.

        Args:
            interval: if the budget is empty, a retry is still allowed this many seconds after the last retry.
        """
        now = time.monotonic()
        if self._tokens < 1.0 and now - self._spent_at < interval:
            return False
        self._tokens, self._spent_at = max(0.0, self._tokens - 1.0), now
        return True


@dataclass(slots=True, eq=False)
class Attempt:
    """An attempt to send a request.

    The attempt runs in the caller's task, because a task per attempt costs half as much CPU time again. It cancels
    this task on a timeout, when the server hangs, or when the hedge is answered first. The caller then gets the
    outcome from `result`, which returns or raises it.

    Args:
        message: the request.
        timeout: the timeout, which all callers of the request share.
        start_hedge: sends the request again in a task; returns None if it may not be sent now. None for no hedges.

    Attributes:
        sent_at: when the request was sent, on `time.monotonic()`.
        hedged_at: when the request was last sent, on `time.monotonic()`.
        hedges: how often the request was hedged.
        is_done: whether the attempt has ended.
    """

    message: Message
    timeout: AttemptTimeout
    start_hedge: Callable[[], asyncio.Task[Any] | None] | None
    sent_at: float = field(default_factory=time.monotonic)
    hedged_at: float = field(default_factory=time.monotonic)
    hedges: int = 0
    is_done: bool = False
    _error: ServiceError | None = None
    _result: Any = None
    _hedge: asyncio.Task[Any] | None = None
    _task: asyncio.Task[Any] | None = field(default_factory=asyncio.current_task)

    def hedge(self) -> bool:
        """Send the request again, in place of an earlier hedge; return whether it was sent."""
        hedge = None if self.start_hedge is None else self.start_hedge()
        if hedge is None:
            return False
        if self._hedge is not None:  # it may have reached a server that hangs, too
            self._hedge.cancel()
        self._hedge, self.hedged_at = hedge, time.monotonic()
        self.hedges += 1
        hedge.add_done_callback(self._on_hedge_done)
        return True

    def _on_hedge_done(self, hedge: asyncio.Task[Any]) -> None:
        if hedge.cancelled() or hedge.exception() is not None:
            return
        if self._hedge is not None and not self.is_done:
            self._result = hedge.result()
            self._cancel()

    def interrupt(self, error: ServiceError) -> None:
        """Cancel the attempt and make `error` its outcome, unless it has ended already."""
        if not self.is_done:
            self._error = error
            self._cancel()

    def _cancel(self) -> None:
        self.is_done = True
        if self._task is not None:
            self._task.cancel()

    def result(self) -> Any:
        """Return the hedge's result, after the current task was cancelled.

        Raises:
            ServiceError: the attempt was interrupted with this error.
            CancelledError: the caller cancelled the task.
        """
        if not self.is_done:
            raise asyncio.CancelledError
        if self._task is not None and sys.version_info >= (3, 11) and self._task.uncancel() > 0:
            raise asyncio.CancelledError
        if self._error is not None:
            raise self._error from None
        return self._result

    def end(self) -> None:
        """Mark the attempt as ended and cancel its hedge."""
        self.is_done = True
        hedge, self._hedge = self._hedge, None
        if hedge is not None:
            hedge.cancel()


class Alarm:
    """Calls a function at the earliest of the requested times; one timer is cheaper than one for each request."""

    def __init__(self, ring: Callable[[], None]) -> None:
        self._ring = ring
        self._timer: asyncio.TimerHandle | None = None

    def set(self, seconds: float) -> None:
        """Call the function in `seconds` at the latest, which may be infinity."""
        loop = asyncio.get_running_loop()
        earliest = math.inf if self._timer is None else self._timer.when()
        if loop.time() + seconds >= earliest:
            return
        self.cancel()
        self._timer = loop.call_later(max(0.0, seconds), self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._ring()

    def cancel(self) -> None:
        """Do not call the function."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
