"""Rate limits of a judge, for this process: requests and tokens per minute.

The timeout of a sample does not run while the sample waits for the rate limit.
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
"""Maximum time between two checks of a waiting sample, in seconds; a corrected estimate can admit it earlier."""


@dataclass(slots=True, eq=False)
class Spending:
    """What a sample uses: an estimate when the sample is sent, which `RateLimit.correct` replaces after the replies.

    Args:
        at: when the sample was sent, on `time.monotonic()`.
        requests: number of requests.
        tokens: number of tokens.
        is_counted: whether the sample is in the window's sums.
    """

    at: float
    requests: int
    tokens: int
    is_counted: bool = True


class RateLimit:
    """The rate limits of one judge; belongs to one event loop.

    Args:
        requests: maximum number of requests per minute; 0 for no limit.
        tokens: maximum number of tokens per minute; 0 for no limit.
    """

    def __init__(self, requests: int, tokens: int) -> None:
        self._most = requests, tokens
        self._spent: deque[Spending] = deque()
        self._sent, self._taken = 0, 0  # sums of the requests and of the tokens in `_spent`
        self._lock = asyncio.Lock()  # admits waiters in order

    @property
    def last_progress(self) -> float:
        """The current time, because a sample that waits here counts as making progress."""
        return time.monotonic()

    async def turn(self, requests: int, tokens: int, deadline: SharedDeadline) -> Spending:
        """Wait until a sample may be sent; return its estimated spending, for `correct`.

        A sample that exceeds a limit on its own is sent once the window is empty.

        Args:
            requests: number of requests that the sample needs.
            tokens: estimated number of tokens that the sample uses.
            deadline: deadline of the sample's batch; the time spent here does not count.
        """
        with deadline.in_queue(self):
            async with self._lock:
                while (wait := self._wait(requests, tokens)) > 0:
                    await asyncio.sleep(min(wait, LONGEST_SLEEP))
                spending = Spending(time.monotonic(), requests, tokens)
                self._count(spending, 1)
                self._spent.append(spending)
        deadline.restart()
        return spending

    def correct(self, spending: Spending, requests: int, tokens: int | None) -> None:
        """Replace a sample's estimate by what it really used; `tokens` is None if the replies do not report tokens."""
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
