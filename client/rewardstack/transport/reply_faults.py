"""Invalid replies: how many an endpoint has sent in a row, and which replicas behind a gateway sent them."""

from __future__ import annotations

import asyncio
import math
import random
import time

from rewardstack.transport import timing
from rewardstack.transport.limiter import backoff

REPLICA_NUMBERS = tuple(map(str, range(1, 9)))
"""All numbers that address replicas; several numbers may address the same server."""


class ReplyFaults:
    """The invalid replies of an endpoint since its last valid reply.

    Rejections of the key, path or model count as invalid replies, too.

    After `FAULTY_AFTER` invalid replies, the endpoint is faulty. Then only one request at a time is retried, as a
    trial, with growing pauses.

    Attributes:
        recovered_at: when the endpoint last ceased to be faulty, on `time.monotonic()`.
        replies: number of invalid replies since the last valid reply.
    """

    def __init__(self) -> None:
        self.recovered_at = -math.inf
        self._next_trial_at = 0.0
        self.replies = 0
        self._change: asyncio.Future[None] | None = None
        self._trials = 0
        self._since = self._last_at = -math.inf

    @property
    def is_faulty(self) -> bool:
        """Whether there were so many invalid replies in a row that the endpoint, not a request, must be the cause."""
        return self.replies >= timing.FAULTY_AFTER

    @property
    def is_final(self) -> bool:
        """Whether the endpoint has been faulty for so long that no request is retried."""
        return self.is_faulty and time.monotonic() > self._since + timing.FAULTY_FOR

    @property
    def is_trial_due(self) -> bool:
        """Whether the next trial request is due."""
        return time.monotonic() >= self._next_trial_at

    def record(self) -> None:
        """Record an invalid reply."""
        now = time.monotonic()
        if not self.replies or now > self._last_at + timing.FAULTS_EXPIRE_AFTER:
            self._since, self.replies, self._trials = now, 0, 0
            self._next_trial_at = now + retry_pause(1)
        self._last_at = now
        self.replies += 1
        self._notify()

    def start_trial(self) -> None:
        """Record that a trial request is sent."""
        self._trials += 1
        self._next_trial_at = time.monotonic() + retry_pause(self._trials + 1)

    def reset(self) -> None:
        """Forget the invalid replies, after a valid reply or because the endpoint is down."""
        if self.is_faulty:
            self.recovered_at = time.monotonic()
        self.replies = 0
        self._notify()

    def _notify(self) -> None:
        if self._change is not None and not self._change.done():
            self._change.set_result(None)

    async def wait(self, seconds: float) -> None:
        """Wait at most `seconds` until a reply arrives, a trial is due, or the faults become final."""
        if self._change is None or self._change.done():
            self._change = asyncio.get_running_loop().create_future()
        now = time.monotonic()
        due = self._next_trial_at - now if self._next_trial_at > now else timing.RETRY_PAUSE
        await asyncio.wait(
            (self._change,), timeout=max(0.0, min(seconds, due, self._since + timing.FAULTY_FOR - now)) + 0.001
        )


class Replicas:
    """Tracks the replicas behind a gateway, by number: when each of them failed a request, and which one is preferred.

    Attributes:
        preferred: number of a replica that accepted a request; empty if none is known.
    """

    def __init__(self) -> None:
        self.preferred = ""
        self._faulty_at: dict[str, float] = {}
        self._demoted_at: dict[str, float] = {}

    @property
    def are_faulty(self) -> bool:
        """Whether no replica is preferred, and all failed a request within the last `FAULTS_EXPIRE_AFTER` seconds."""
        recent = time.monotonic() - timing.FAULTS_EXPIRE_AFTER
        return not self.preferred and sum(failed_at > recent for failed_at in self._faulty_at.values()) == len(
            REPLICA_NUMBERS
        )

    def select(self, number: str) -> str:
        """Record that a replica failed a request, and return the number of the replica for the retry.

        Args:
            number: the replica that failed; empty if it is unknown, so that nothing is recorded.
        """
        if number:
            self._faulty_at[number] = time.monotonic()
            self.demote(number)
        return self.preferred or min(
            random.sample(REPLICA_NUMBERS, len(REPLICA_NUMBERS)), key=lambda number: self._demoted_at.get(number, 0.0)
        )

    def demote(self, number: str) -> None:
        """Stop preferring a replica that failed or did not answer in time, and select the others before it."""
        self._demoted_at[number] = time.monotonic()
        if number == self.preferred:
            self.preferred = ""

    def record_success(self, number: str) -> None:
        """Record a valid reply of replica `number`, which is empty if the request named no replica."""
        self._faulty_at.pop(number, None)
        self._demoted_at.pop(number, None)
        self.preferred = number or self.preferred
        if not number and self.are_faulty:
            self._faulty_at.clear()


def retry_pause(times: int) -> float:
    """Return the seconds to wait before a retry after `times` invalid replies."""
    return backoff(timing.RETRY_PAUSE, math.inf, times - 1)
