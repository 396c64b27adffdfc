"""Values on their way to Redis: a task of the event loop writes them, and nobody who waits for a score waits for it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from rewardstack.core.event_loop import within

T = TypeVar("T")

TOGETHER = 128
"""Values written in one go: few enough that the loop's other work does not wait long while they are packed."""
GATHER = 0.05
"""Seconds that values wait for company: a round trip costs as much as some twenty of them."""
CLOSING_TIME = 1.5
"""Seconds that what still waits has at the end; more than one writing may take (`rewardstack.cache.link.WAIT`)."""


class Writer(Generic[T]):
    """Takes values at once and writes them later; lives on one event loop.

    Args:
        write: writes values by key; whether it could.
        most: values that wait at most; further ones are dropped.
        dropped: told how many values were not written.
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
        """Takes values; what there is no room for is dropped."""
        room = max(0, self._most - len(self._waiting))
        self._waiting += entries[:room]
        if len(entries) > room:
            self._dropped(len(entries) - room)
        if self._waiting and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._gather())

    async def flush(self) -> None:
        """Writes what still waits, as far as `CLOSING_TIME` lets it."""
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
