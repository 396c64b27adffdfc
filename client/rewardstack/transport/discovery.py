"""What servers say of themselves: asked once a minute, sooner where one did not answer, and never twice at a time."""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.event_loop import within
from rewardstack.core.lru import LruCache
from rewardstack.errors import DeadlineError, RejectedError, RewardstackError

FRESH = 60.0
"""Seconds for which an answer is believed."""
RENEWAL = 30.0
"""Seconds that a server has for its next answer, and after which it is asked again where it gave none."""
BRIEF = 2.0
"""Seconds that callers wait for an answer that they can do without,"""
BRIEF_SHARE = 0.3
"""and the share that this may be of the time there is."""
SERVERS = 1024
"""Servers whose answers are kept: samples may name servers without end."""

D = TypeVar("D", bound=Hashable)
T = TypeVar("T")
Ask = Callable[[SharedDeadline], Coroutine[Any, Any, T]]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Answer(Generic[T]):
    """What a server said, and when."""

    value: T
    given_at: float = field(default_factory=time.monotonic)

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() <= self.given_at + FRESH


@dataclass(slots=True)
class _Request(Generic[T]):
    """A request to a server that is under way, how long it may take, and since when it does."""

    task: asyncio.Task[T]
    deadline: SharedDeadline
    begun_at: float = field(default_factory=time.monotonic)

    async def result(self, seconds: float) -> T:
        """What comes of it.

        Raises:
            DeadlineError: nothing did within these seconds, or within those that the server had.
        """
        try:
            return await within(seconds, asyncio.shield(self.task))
        except asyncio.TimeoutError:
            awaited = self.deadline.awaited
            raise DeadlineError(f"no answer in time{f'; last: {awaited.cause()}' if awaited else ''}") from None


class Discovery(Generic[D, T]):
    """The answers of every server asked so far; lives on one event loop."""

    def __init__(self) -> None:
        self._answers: LruCache[D, _Answer[T]] = LruCache(SERVERS)
        self._requests: dict[D, _Request[T]] = {}

    def is_fresh(self, destination: D) -> bool:
        """Whether a server was asked within `FRESH` seconds."""
        answer = self._answers.get(destination)
        return answer is not None and answer.is_fresh

    def known(self, destination: D, default: T) -> T:
        """What a server said last; `default` where it has not said anything."""
        answer = self._answers.get(destination)
        return default if answer is None else answer.value

    def has_answered_since(self, destination: D, moment: float) -> bool:
        """Whether a server's last answer came after a moment, on `time.monotonic()`."""
        answer = self._answers.get(destination)
        return answer is not None and answer.given_at >= moment

    def __contains__(self, destination: D) -> bool:
        return self._answers.get(destination) is not None

    async def find(self, destination: D, ask: Ask[T], deadline: SharedDeadline, wait: float = math.inf) -> T:
        """What a server says of itself; what it said before holds where it does not say so anew `briefly`.

        Args:
            destination: the server.
            ask: asks it.
            deadline: of the caller.
            wait: seconds that the caller waits at most for a first answer.

        Raises:
            RejectedError: the server refuses to say it any more.
            RewardstackError: there is no answer, and none came; what `ask` raises.
        """
        answer = self._answers.get(destination)
        if answer is None:
            return await self.find_anew(destination, ask, deadline, wait)
        if answer.is_fresh:
            return answer.value
        request = self._requests.get(destination) or self._begin(destination, ask, SharedDeadline(Deadline(RENEWAL)))
        try:
            return await request.result(request.begun_at + briefly(deadline) - time.monotonic())
        except RejectedError:
            raise
        except RewardstackError as error:
            log.debug("what a server said of itself before holds: %s", error)
            return answer.value

    async def find_anew(self, destination: D, ask: Ask[T], deadline: SharedDeadline, wait: float = math.inf) -> T:
        """What the server says now, whatever it said before and whoever else asks; raises as `find` does."""
        until = time.monotonic() + wait
        while (request := self._requests.get(destination)) is not None:
            try:
                return await request.result(min(until - time.monotonic(), deadline.remaining()))
            except DeadlineError:
                if not request.task.done() or deadline.remaining() <= 0:
                    raise
        return await self._begin(destination, ask, deadline).result(until - time.monotonic())

    def _begin(self, destination: D, ask: Ask[T], deadline: SharedDeadline) -> _Request[T]:
        task = asyncio.create_task(self._learn(destination, ask, deadline))
        request = self._requests[destination] = _Request(task, deadline)
        request.task.add_done_callback(_notice)
        return request

    async def _learn(self, destination: D, ask: Ask[T], deadline: SharedDeadline) -> T:
        try:
            value = await ask(deadline)
        except RewardstackError as error:
            answer = self._answers.get(destination)
            if answer is not None and not isinstance(error, RejectedError):
                answer.given_at = time.monotonic() - FRESH + RENEWAL
            raise
        else:
            self._answers.put(destination, _Answer(value))
            return value
        finally:
            del self._requests[destination]


def _notice(task: asyncio.Task[Any]) -> None:
    """An error is its waiters' to hear; where all of them have gone it is nobody's."""
    if not task.cancelled():
        task.exception()


def briefly(deadline: SharedDeadline) -> float:
    """Seconds that a caller with this deadline waits for an answer that it can do without."""
    return min(BRIEF, deadline.remaining() * BRIEF_SHARE)
