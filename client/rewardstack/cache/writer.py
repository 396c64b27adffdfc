"""Background writes to Redis, which never delay a score."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from rewardstack.core.event_loop import within

T = TypeVar("T")

TOGETHER = 128
"""Maximum number of values per write; more would block the event loop for too long."""
GATHER = 0.05
"""Seconds to collect values before a write: a round trip costs as much as about twenty values."""
CLOSING_TIME = 1.5
"""Time limit for all writes of `flush`, in seconds; longer than that of one write (`rewardstack.cache.link.WAIT`)."""


class Writer(Generic[T]):
    """Queues values and writes them later; belongs to one event loop.

    Args:
        write: writes pairs of key and value, and returns whether it succeeded.
        most: maximum length of the queue; values beyond it are dropped.
        dropped: callback that receives the number of values that were dropped.
    """

    def __init__(
        self,
        write: Callable[[Sequence[tuple[str, T]]], Awaitable[bool]],
        most: int,
        dropped: Callable[[int], None],
    ) -> None:
        self._write = write
        self._most = most
        self._dropped = dropped
        self._waiting: list[tuple[str, T]] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, entries: Sequence[tuple[str, T]]) -> None:
        """Queue values; drop those that do not fit into the queue."""
        room = max(0, self._most - len(self._waiting))
        self._waiting += entries[:room]
        if len(entries) > room:
            self._dropped(len(entries) - room)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._gather())

    async def flush(self) -> None:
        """Write queued values for at most `CLOSING_TIME` seconds, and drop the rest."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        with contextlib.suppress(asyncio.TimeoutError):
            await within(CLOSING_TIME, self._write_all())
        self._drop()

    async def _gather(self) -> None:
        while self._waiting:
            if len(self._waiting) < TOGETHER:
                await asyncio.sleep(GATHER)
            await self._write_all()

    async def _write_all(self) -> None:
        while self._waiting:
            part = self._waiting[:TOGETHER]
            if not await self._write(part):
                self._drop()
            del self._waiting[: len(part)]

    def _drop(self) -> None:
        if self._waiting:
            self._dropped(len(self._waiting))
            self._waiting.clear()
