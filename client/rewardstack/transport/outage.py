"""Outages of a service: how long calls wait for the service, and how its recovery is detected.

An outage costs one timeout in total. Later calls fail fast while a background task probes the endpoints. An endpoint is
unavailable in one of two ways:

- Down (`EndpointFailure.down_since`): it recovers with an answer to `GET /health`.
- Stalled (`Stall`): it is up, but left requests of one HTTP method unanswered for a whole timeout. It recovers with an
  answer to a request of this method. The background probe is a cheap request, or the request that timed out. Because
  the latter may itself cause the stall, a caller's request is also let through at growing intervals.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rewardstack.core.deadline import SharedDeadline
from rewardstack.errors import UnreachableError
from rewardstack.transport.limiter import EJECTION_FIRST, EJECTION_MOST, backoff

if TYPE_CHECKING:
    from rewardstack.transport.endpoint import Endpoint, Message

PROBE_TIMEOUT = 1.0
"""Seconds that an unavailable endpoint has to answer a probe."""
PROBE_PAUSES = 0.5, 5.0
"""Minimum and maximum seconds between two probes."""
PROBE_FACTOR = 5
"""Pause between two probes, as a multiple of the probe's duration."""
PROBES_END_AFTER = 600.0
"""Seconds without a call after which probing stops."""
OUTDATED_AFTER = 10.0
"""Seconds after which a failure is outdated: a call then waits for a new probe, at most `PROBE_TIMEOUT` seconds."""
REPEAT_AFTER = 5.0
"""Seconds before a request that timed out is sent again as a probe."""
ADJACENT = 0.5
"""Maximum seconds from the end of a stall to a request that still belongs to it."""
WHOLE = 0.9
"""Share of a call's timeout that a stall must have lasted for the call to fail fast; below 1, because a call spends
part of its timeout on other requests."""


class Stall:
    """An endpoint that is up, but leaves requests of one HTTP method unanswered.

    Attributes:
        probe: request that tests whether the stall is over.
        is_cheap: whether `probe` is a cheap request rather than the request that timed out.
        cause: known state of the endpoint.
    """

    def __init__(self) -> None:
        self.probe: Message | None = None
        self.is_cheap = False
        self.cause = ""
        self._answered_at = self._since = self._until = -math.inf
        self._times = 0
        self._next_trial_at = self._tried_until = 0.0

    @property
    def is_on(self) -> bool:
        """Whether a request timed out and none was answered since."""
        return self._until > self._answered_at

    @property
    def seconds(self) -> float:
        """How long requests have been unanswered; 0 if the stall is over."""
        return self._until - self._since if self.is_on else 0.0

    @property
    def is_probed(self) -> bool:
        """Whether a probe is due."""
        since = self._next_trial_at + (0.0 if self.is_cheap else REPEAT_AFTER)
        return self.is_on and time.monotonic() >= since

    def note(self, sent_at: float, cause: str, probe: Message, *, is_cheap: bool) -> None:
        """Record the timeout of a request that was sent at `sent_at`, on `time.monotonic()`."""
        if self._answered_at > sent_at:
            return
        now = time.monotonic()
        if not self.is_on or sent_at > self._until + ADJACENT:
            self._since = sent_at
        if sent_at > self._until:  # else it was in flight together with the request that timed out before
            pause = backoff(EJECTION_FIRST, EJECTION_MOST, self._times - 1) if self._times else 0.0
            self._next_trial_at = now + pause
            self._times += 1
        self._since = min(self._since, sent_at)
        self._until = now
        self.cause, self.probe, self.is_cheap = cause, probe, is_cheap

    def try_out(self, timeout: float) -> bool:
        """Return whether a caller's request, with `timeout` seconds, should test whether the stall is over."""
        now = time.monotonic()
        if self.is_cheap or now < max(self._next_trial_at, self._tried_until):
            return False
        self._tried_until = now + timeout + EJECTION_FIRST
        return True

    def is_answered(self, *, by_probe: bool = False) -> None:
        """Record an answer, which ends the stall; only an answer to a real request resets the backoff."""
        self._answered_at = time.monotonic()
        if not by_probe:
            self._times = 0


class Outage:
    """Tracks the outage of a service and probes its endpoints.

    The timeout of every call counts from the start of the outage, and is shorter if connections are refused.

    Args:
        endpoints: returns the current endpoints.
        refused_timeout: maximum seconds to wait while connections are refused.
    """

    def __init__(self, endpoints: Callable[[], Sequence[Endpoint]], refused_timeout: float) -> None:
        self._endpoints = endpoints
        self._refused_timeout = refused_timeout
        self._probes: asyncio.Task[None] | None = None
        self._asked_at = 0.0

    def ends_in(self, endpoints: Sequence[Endpoint], deadline: SharedDeadline) -> float:
        """Return the seconds that a call still waits for a service that is down.

        Returns:
            0 or less if the call has to fail fast; infinity if one of the endpoints is not down.
        """
        for one in endpoints:
            if one.failure.down_since == math.inf:
                return math.inf
        timeout = deadline.timeout
        brief = min(timeout, self._refused_timeout)
        ends = [min(one.failure.down_since + timeout, one.failure.refusing_since + brief) for one in endpoints]
        return max(ends) - time.monotonic()

    def raise_if_stalled(self, method: str, deadline: SharedDeadline) -> None:
        """Raise if all available endpoints are stalled, unless this request should test for recovery.

        Raises:
            UnreachableError: the endpoints have been stalled for as long as the call would wait.
        """
        endpoints = self._endpoints()
        if not any(one.stalls[method].is_on for one in endpoints):
            return
        allowed = deadline.allowed
        there = [one for one in endpoints if one.failure.down_since == math.inf]
        left = [one for one in there if one.limiter.is_available] or there
        found = [one.stalls[method] for one in left]
        if not found or any(stall.seconds < WHOLE * allowed for stall in found):
            return
        self.probe()
        if any(stall.try_out(allowed) for stall in found):
            return
        seconds = max(stall.seconds for stall in found)
        causes = "; ".join(stall.cause for stall in found)
        raise UnreachableError(f"{causes}; no {method} answered for {seconds:.1f} s, failing fast until one is")

    async def wait_for_probe(self, deadline: SharedDeadline) -> None:
        """Start probing; wait for the first probe only if the last failure is outdated."""
        self.probe()
        failed_at = max(one.failure.noted_at for one in self._endpoints())
        if self._probes is not None and time.monotonic() > failed_at + OUTDATED_AFTER:
            await asyncio.wait((self._probes,), timeout=min(PROBE_TIMEOUT, max(0.0, deadline.remaining())))

    def probe(self) -> None:
        """Start probing in the background until the endpoints are back or `PROBES_END_AFTER` has passed."""
        self._asked_at = time.monotonic()
        if self._probes is None or self._probes.done():
            self._probes = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        least, most = PROBE_PAUSES
        while away := [one for one in self._endpoints() if one.is_away]:
            began = time.monotonic()
            await asyncio.gather(*(one.probe(PROBE_TIMEOUT) for one in away), return_exceptions=True)
            ended = time.monotonic()
            if ended > self._asked_at + PROBES_END_AFTER or not any(one.is_away for one in away):
                return
            is_down = any(one.failure.down_since < math.inf for one in away)
            await asyncio.sleep(min(max(least, PROBE_FACTOR * (ended - began)), most) if is_down else most)

    def close(self) -> None:
        """Stop probing."""
        if self._probes is not None:
            self._probes.cancel()
