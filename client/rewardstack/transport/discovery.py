"""Service discovery: caches what each server reports about itself, such as its model.

An answer is valid for a minute. Only one request at a time asks a server, and all callers share its answer.
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
from rewardstack.transport import timing

MAX_SERVERS = 1024
"""Maximum number of servers whose answers are cached; samples can name any number of servers."""

D = TypeVar("D", bound=Hashable)
T = TypeVar("T")
Ask = Callable[[SharedDeadline], Coroutine[Any, Any, T]]

log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Answer(Generic[T]):
    """A server's last answer, and the time when it was received."""

    value: T
    received_at: float = field(default_factory=time.monotonic)

    @property
    def is_fresh(self) -> bool:
        return time.monotonic() <= self.received_at + timing.VALID_FOR


@dataclass(slots=True)
class _Request(Generic[T]):
    """A discovery request in flight, with its deadline and start time."""

    task: asyncio.Task[T]
    deadline: SharedDeadline
    started_at: float = field(default_factory=time.monotonic)

    async def result(self, seconds: float) -> T:
        """Return the answer of the request.

        Raises:
            DeadlineError: no answer came within `seconds` or within the request's own deadline.
        """
        try:
            return await run_with_timeout(seconds, asyncio.shield(self.task))
        except asyncio.TimeoutError:
            service = self.deadline.service
            state = f"; last known state: {service.cause()}" if service else ""
            cause = service.known_cause() if service else None
            raise DeadlineError(f"no answer in time{state}", cause=cause) from None


class Discovery(Generic[D, T]):
    """A cache of what each server reported about itself; belongs to one event loop."""

    def __init__(self) -> None:
        self._answers: LruCache[D, _Answer[T]] = LruCache(MAX_SERVERS)
        self._requests: dict[D, _Request[T]] = {}

    def last_answer(self, destination: D, default: T) -> T:
        """Return the last answer of a server; `default` if there is none."""
        answer = self._answers.get(destination)
        return default if answer is None else answer.value

    def has_answered_since(self, destination: D, moment: float) -> bool:
        """Return whether the last answer of a server came at or after `moment`, on `time.monotonic()`."""
        answer = self._answers.get(destination)
        return answer is not None and answer.received_at >= moment

    def __contains__(self, destination: D) -> bool:
        return self._answers.get(destination) is not None

    async def find(self, destination: D, ask: Ask[T], deadline: SharedDeadline, wait: float = math.inf) -> T:
        """Return the answer of a server.

        If the last answer is outdated, wait for a new answer for at most `optional_wait(deadline)` seconds. If no
        new answer comes, return the outdated answer.

        Args:
            destination: the server.
            ask: asks the server.
            deadline: the caller's deadline.
            wait: maximum seconds to wait for a first answer.

        Raises:
            RejectedError: the server rejects the request.
            DeadlineError: there is no earlier answer, and no new answer came in time.
            RewardstackError: the error of `ask`, if there is no earlier answer.
        """
        answer = self._answers.get(destination)
        if answer is None:
            return await self.refresh(destination, ask, deadline, wait)
        if answer.is_fresh:
            return answer.value
        request = self._requests.get(destination) or self._start(
            destination, ask, SharedDeadline(Deadline(timing.RENEWAL))
        )
        try:
            return await request.result(request.started_at + optional_wait(deadline) - time.monotonic())
        except RejectedError:
            raise
        except RewardstackError as error:
            log.debug("service discovery failed, using the last answer: %s", error)
            return answer.value

    async def refresh(self, destination: D, ask: Ask[T], deadline: SharedDeadline, wait: float = math.inf) -> T:
        """Ask the server, or join a request in flight, and return the new answer; see `find` for the errors."""
        ends_at = time.monotonic() + wait
        while (request := self._requests.get(destination)) is not None:
            try:
                return await request.result(min(ends_at - time.monotonic(), deadline.remaining()))
            except DeadlineError:
                if not request.task.done() or deadline.remaining() <= 0:
                    raise
        return await self._start(destination, ask, deadline).result(ends_at - time.monotonic())

    def _start(self, destination: D, ask: Ask[T], deadline: SharedDeadline) -> _Request[T]:
        task = asyncio.create_task(self._ask(destination, ask, deadline))
        request = self._requests[destination] = _Request(task, deadline)
        request.task.add_done_callback(_retrieve_exception)
        return request

    async def _ask(self, destination: D, ask: Ask[T], deadline: SharedDeadline) -> T:
        try:
            value = await ask(deadline)
        except RewardstackError as error:
            answer = self._answers.get(destination)
            if answer is not None and not isinstance(error, RejectedError):
                answer.received_at = time.monotonic() - timing.VALID_FOR + timing.RENEWAL
            raise
        else:
            self._answers.put(destination, _Answer(value))
            return value
        finally:
            del self._requests[destination]


def _retrieve_exception(task: asyncio.Task[Any]) -> None:
    """Retrieve the task's exception, so that asyncio does not log it if nobody waits for the task."""
    if not task.cancelled():
        task.exception()


def optional_wait(deadline: SharedDeadline) -> float:
    """Return the maximum seconds that a caller with this deadline waits for an optional answer; see `OPTIONAL_WAIT`."""
    return min(timing.OPTIONAL_WAIT, deadline.remaining() * timing.OPTIONAL_WAIT_SHARE)
