"""Rate limits of a judge: requests and tokens per minute, in this process.

The timeout of a sample does not run while it waits here.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass

from rewardstack.core.deadline import SharedDeadline

WINDOW = 60.0
"""Length of the sliding window in seconds."""
LONGEST_SLEEP = 1.0
"""Seconds until a waiting sample checks again, because the spending of others may be corrected meanwhile."""


@dataclass(slots=True, eq=False)
class Spending:
    """The spending of a sample: an estimate when it is sent, corrected after its replies."""

    at: float
    requests: int
    tokens: int
    is_counted: bool = True


class RateLimit:
    """The rate limits of one judge; belongs to one event loop.

    Args:
        requests: most requests per minute; 0 for no limit.
        tokens: most tokens per minute; 0 for no limit.
    """

    def __init__(self, requests: int, tokens: int) -> None:
        self._most = requests, tokens
        self._spent: deque[Spending] = deque()
        self._sent, self._taken = 0, 0  # by those in `_spent`
        self._lock = asyncio.Lock()  # admits waiters in order

    @property
    def last_progress(self) -> float:
        """The current time: waiting here counts as progress."""
        return time.monotonic()

    async def turn(self, requests: int, tokens: int, deadline: SharedDeadline) -> Spending:
        """Wait until a sample may be sent, and return its spending for `correct`.

        A sample that exceeds the limit alone is sent once the window is empty.

        Args:
            requests: number of its requests.
            tokens: most tokens that it uses.
            deadline: shared by all waiters; the time spent here does not count.
        """
        with deadline.queued(self):
            async with self._lock:
                while (wait := self._wait(requests, tokens)) > 0:
                    await asyncio.sleep(min(wait, LONGEST_SLEEP))
                spending = Spending(time.monotonic(), requests, tokens)
                self._count(spending, 1)
                self._spent.append(spending)
        deadline.progress()
        return spending

    def correct(self, spending: Spending, requests: int, tokens: int | None) -> None:
        """Replace the estimate of a sample by its actual spending; `tokens` is None if its replies do not report it."""
        if spending.is_counted:
            self._count(spending, -1)
            spending.requests, spending.tokens = requests, spending.tokens if tokens is None else tokens
            self._count(spending, 1)

    def _count(self, spending: Spending, sign: int) -> None:
        spending.is_counted = sign > 0
        self._sent += sign * spending.requests
        self._taken += sign * spending.tokens

    def _wait(self, requests: int, tokens: int) -> float:
        """Return the seconds until a sample fits into the window; 0 if it fits now."""
        now, wait = time.monotonic(), 0.0
        while self._spent and self._spent[0].at <= now - WINDOW:
            self._count(self._spent.popleft(), -1)
        most_requests, most_tokens = self._most
        over_requests = self._sent + requests - most_requests if most_requests else 0
        over_tokens = self._taken + tokens - most_tokens if most_tokens else 0
        for one in self._spent:
            if over_requests <= 0 and over_tokens <= 0:
                break
            wait = one.at + WINDOW - now
            over_requests, over_tokens = over_requests - one.requests, over_tokens - one.tokens
        return wait
