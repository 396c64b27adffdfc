"""Requests and tokens that a judge may be sent in any minute, as its provider limits them.

A sample that waits here for its turn does not use up its timeout. The limits hold for one process.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass

from rewardstack.core.deadline import SharedDeadline

WINDOW = 60.0
"""Seconds in which no more than the limits is sent."""
LONGEST_SLEEP = 1.0
"""Seconds after which a waiting sample looks again: what others were taken to spend is corrected meanwhile."""


@dataclass(slots=True, eq=False)
class Spending:
    """What a sample takes: an estimate when it is sent, corrected when its replies have come."""

    at: float
    requests: int
    tokens: int
    is_counted: bool = True


class RateLimit:
    """The limits of one judge; lives on one event loop.

    Args:
        requests: that may be sent in any minute; 0 for any number.
        tokens: that they may take; 0 for any number.
    """

    def __init__(self, requests: int, tokens: int) -> None:
        self._most = requests, tokens
        self._spent: deque[Spending] = deque()
        self._sent, self._taken = 0, 0  # by those in `_spent`
        self._lock = asyncio.Lock()  # serves who waits in order

    @property
    def last_progress(self) -> float:
        """Return the current time: to wait for a turn is progress."""
        return time.monotonic()

    async def turn(self, requests: int, tokens: int, deadline: SharedDeadline) -> Spending:
        """Wait until a sample may be sent, and return its spending for `correct`.

        A sample that takes more than a minute's limit is sent once nothing else counts.

        Args:
            requests: that it takes.
            tokens: that it takes at most.
            deadline: of all who wait for it; the time here does not count.
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
        """Note what a sample has taken in the end; None: its replies do not say how many tokens."""
        if spending.is_counted:
            self._count(spending, -1)
            spending.requests, spending.tokens = requests, spending.tokens if tokens is None else tokens
            self._count(spending, 1)

    def _count(self, spending: Spending, sign: int) -> None:
        spending.is_counted = sign > 0
        self._sent += sign * spending.requests
        self._taken += sign * spending.tokens

    def _wait(self, requests: int, tokens: int) -> float:
        """Return the seconds until a sample fits; 0 if it does."""
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
