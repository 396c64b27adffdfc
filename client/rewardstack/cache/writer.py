"""Write values to Redis in the background, so that a write never delays a score."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from rewardstack.core.event_loop import run_with_timeout

T = TypeVar("T")

MAX_BATCH = 128
"""Maximum number of values per write; more would block the event loop for too long."""
WINDOW = 0.05
"""Seconds to collect values before a write. A few large writes are faster than many small ones: a round trip takes as
long as writing 20 values."""
FLUSH_TIMEOUT = 1.5
"""Time limit for all writes of `flush`, in seconds; longer than the timeout of one write (`cache.link.TIMEOUT`)."""


class Writer(Generic[T]):
    """Queues values and writes them later; belongs to one event loop. If a write fails, the whole queue is dropped.

    Args:
        write: writes pairs of key and value, and returns whether it succeeded.
        max_queue: maximum length of the queue; values beyond it are dropped.
        on_dropped: callback that receives the number of values that were dropped.
    """

    def __init__(
        self,
        write: Callable[[Sequence[tuple[str, T]]], Awaitable[bool]],
        max_queue: int,
        on_dropped: Callable[[int], None],
    ) -> None:
        self._write = write
        self._max_queue = max_queue
        self._on_dropped = on_dropped
        self._queue: list[tuple[str, T]] = []
        self._task: asyncio.Task[None] | None = None

    def put(self, entries: Sequence[tuple[str, T]]) -> None:
        """Queue values; drop values for which the queue has no space."""
        free = max(0, self._max_queue - len(self._queue))
        self._queue += entries[:free]
        if len(entries) > free:
            self._on_dropped(len(entries) - free)
        if self._queue and (self._task is None or self._task.done()):
            self._task = asyncio.get_running_loop().create_task(self._write_queue())

    async def flush(self) -> None:
        """Write queued values for at most `FLUSH_TIMEOUT` seconds, and drop the rest."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        with contextlib.suppress(asyncio.TimeoutError):
            await run_with_timeout(FLUSH_TIMEOUT, self._write_all())
        self._drop()

    async def _write_queue(self) -> None:
        while self._queue:
            if len(self._queue) < MAX_BATCH:
                await asyncio.sleep(WINDOW)
            await self._write_all()

    async def _write_all(self) -> None:
        while self._queue:
            batch = self._queue[:MAX_BATCH]
            if not await self._write(batch):
                self._drop()
            del self._queue[: len(batch)]

    def _drop(self) -> None:
        if self._queue:
            self._on_dropped(len(self._queue))
            self._queue.clear()
