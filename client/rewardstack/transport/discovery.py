"""Service discovery: remember what each server reports about itself, such as its model, and ask again when outdated.

An answer is valid for a minute. Each server is asked by one request at a time, which all callers share.
"""

from __future__ import annotations

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Hashable
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rewardstack.core.deadline import Deadline, SharedDeadline
from rewardstack.core.event_loop import run_with_timeout
from rewardstack.core.lru import LruCache
from rewardstack.errors import DeadlineError, RejectedError, RewardstackError

FRESH = 60.0
"""Seconds for which an answer is valid."""
RENEWAL = 30.0
"""Seconds that a server has to renew its answer; after a failed renewal, the old answer is valid for as long again."""
BRIEF = 2.0
"""Maximum seconds that callers wait for an answer that they can do without."""
BRIEF_SHARE = 0.3
"""Maximum share of the remaining time that callers wait for such an answer."""
SERVERS = 1024
"""Maximum number of servers whose answers are kept; samples can name any number of servers."""

D = TypeVar("D", bound=Hashable)
T = TypeVar("T")
Ask = Callable[[SharedDeadline], Coroutine[Any, Any, T]]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Answer(Generic[T]):
    """A server's last answer, and the time when it came."""

    value: T
    given_at: float = field(default_factory=time.monotonic)

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() <= self.given_at + FRESH


@dataclass(slots=True)
class _Request(Generic[T]):
    """A discovery request in flight, with its deadline and start time."""

    task: asyncio.Task[T]
    deadline: SharedDeadline
    begun_at: float = field(default_factory=time.monotonic)

    async def result(self, seconds: float) -> T:
        """Return the answer of the request.

        Raises:
            DeadlineError: no answer came within `seconds` or within the request's own deadline.
        """
        try:
            return await run_with_timeout(seconds, asyncio.shield(self.task))
        except asyncio.TimeoutError:
            service = self.deadline.service
            raise DeadlineError(f"no answer in time{f'; last: {service.cause()}' if service else ''}") from None


class Discovery(Generic[D, T]):
    """The last answer of each server about itself; belongs to one event loop."""

    def __init__(self) -> None:
        self._answers: LruCache[D, _Answer[T]] = LruCache(SERVERS)
        self._requests: dict[D, _Request[T]] = {}

    def is_fresh(self, destination: D) -> bool:
        """Return whether the last answer of a server is at most `FRESH` seconds old."""
        answer = self._answers.get(destination)
        return answer is not None and answer.is_fresh

    def known(self, destination: D, default: T) -> T:
        """Return the last answer of a server, `default` if there is none."""
        answer = self._answers.get(destination)
        return default if answer is None else answer.value

    def has_answered_since(self, destination: D, moment: float) -> bool:
        """Return whether the last answer of a server came at or after `moment`, on `time.monotonic()`."""
        answer = self._answers.get(destination)
        return answer is not None and answer.given_at >= moment

    def __contains__(self, destination: D) -> bool:
        return self._answers.get(destination) is not None

    async def find(self, destination: D, ask: Ask[T], deadline: SharedDeadline, wait: float = math.inf) -> T:
        """Return the answer of a server, even an outdated answer if no new one comes within `briefly(deadline)`.

        Args:
            destination: the server.
            ask: asks the server.
            deadline: the caller's deadline.
            wait: maximum seconds to wait for a first answer.

        Raises:
            RejectedError: the server rejects the request.
            RewardstackError: the error of `ask`, if there is no earlier answer.
        """
        answer = self._answers.get(destination)
        if answer is None:
            return await self.refresh(destination, ask, deadline, wait)
        if answer.is_fresh:
            return answer.value
        request = self._requests.get(destination) or self._begin(destination, ask, SharedDeadline(Deadline(RENEWAL)))
        try:
            return await request.result(request.begun_at + briefly(deadline) - time.monotonic())
        except RejectedError:
            raise
        except RewardstackError as error:
            log.debug("service discovery failed, using the last answer: %s", error)
            return answer.value

    async def refresh(self, destination: D, ask: Ask[T], deadline: SharedDeadline, wait: float = math.inf) -> T:
        """Ask the server, or join a request in flight, and return the new answer; raise as `find` does."""
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
    """Mark the task's exception as retrieved, so that asyncio does not log it if nobody waits for the task."""
    if not task.cancelled():
        task.exception()


def briefly(deadline: SharedDeadline) -> float:
    """Return the seconds that a caller with this deadline waits for an answer that it can do without."""
    return min(BRIEF, deadline.remaining() * BRIEF_SHARE)
