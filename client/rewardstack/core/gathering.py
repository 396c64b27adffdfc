"""Calls for an item each that come at about the same time, answered by one call for all of them.

A trainer that awaits a function a sample pays for each what a batch pays once: the way to another thread's loop and
back, and that through the pipeline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from typing import Generic, TypeVar

WINDOW = 0.002
"""Seconds that the first of some calls waits for company."""

T = TypeVar("T")
R = TypeVar("R")
K = TypeVar("K", bound=Hashable)


class Gathering(Generic[T, K, R]):
    """The calls that wait for company, on whichever event loops they were made.

    Args:
        answer: gives an outcome for each item, in order, of some that have the same kind. Where it raises for several,
            or gives too few, each that has none is asked for by itself, so that only who is to blame fails.
    """

    def __init__(self, answer: Callable[[Sequence[T], K], Awaitable[Sequence[R]]]) -> None:
        self._answer = answer
        self._waiting: dict[tuple[asyncio.AbstractEventLoop, K], list[tuple[T, asyncio.Future[R]]]] = {}
        self._running: set[asyncio.Task[None]] = set()

    async def ask(self, item: T, kind: K) -> R:
        """The outcome of an item, which comes with those of its company; raises what `answer` does.

        Args:
            item: to be answered.
            kind: what it has in common with those that it may be answered with.
        """
        loop = asyncio.get_running_loop()
        place, outcome = (loop, kind), loop.create_future()
        if place not in self._waiting:
            self._waiting[place] = []
            loop.call_later(WINDOW, self._send, place)
        self._waiting[place].append((item, outcome))
        return await outcome

    def _send(self, place: tuple[asyncio.AbstractEventLoop, K]) -> None:
        loop, kind = place
        task = loop.create_task(self._settle(self._waiting.pop(place), kind))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _settle(self, calls: Sequence[tuple[T, asyncio.Future[R]]], kind: K) -> None:
        try:
            outcomes = await self._answer([item for item, _ in calls], kind)
            for (_, future), outcome in zip(calls, outcomes, strict=True):
                if not future.done():  # else its caller has given up
                    future.set_result(outcome)
        except Exception as error:  # noqa: BLE001 - it is raised where it is awaited
            left = [call for call in calls if not call[1].done()]
            if len(calls) > 1:
                await asyncio.gather(*(self._settle([call], kind) for call in left))
            elif left:
                calls[0][1].set_exception(error)
        finally:
            for _, future in calls:  # where this was cancelled, nobody goes on waiting
                future.cancel()
