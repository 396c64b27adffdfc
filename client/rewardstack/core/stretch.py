"""Bound the time for which a coroutine works without letting others work.

All samples of a process are prepared and scored in one event loop. How long one sample takes depends on what a policy
has written, so a loop over samples rests by time, not by their number.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator

SECONDS = 0.01
"""Seconds after which a coroutine rests."""
LONG_TEXT = 32_000
"""Number of characters of a text that may take so long that a thread reads it."""
MAX_SLICE = 512
"""Maximum number of items that are handled without a look at the clock."""


class Stretch:
    """The time since a coroutine last let others work."""

    __slots__ = ("_began",)

    def __init__(self) -> None:
        self._began = time.monotonic()

    def is_over(self) -> bool:
        """Return whether it is time to rest."""
        return time.monotonic() - self._began > SECONDS

    async def rest(self) -> None:
        """Let others work if the stretch is over."""
        if self.is_over():
            await asyncio.sleep(0)
            self._began = time.monotonic()


def slices(count: int) -> Iterator[slice]:
    """Yield slices of `count` items, which become longer while the caller is fast, and shorter if it is slow.

    Use this for a function that handles several items in one call; rest between the slices.
    """
    start, size = 0, 16
    while start < count:
        began = time.monotonic()
        yield slice(start, start + size)
        start += size
        took = time.monotonic() - began
        if took < SECONDS / 4:
            size = min(2 * size, MAX_SLICE)
        elif took > SECONDS:
            size = max(1, size // 2)
