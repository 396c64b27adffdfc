"""A service that is away: how long calls wait for it, and how it is found to be back.

An outage costs one timeout in all. Later calls fail at once; a task in the background probes the endpoints, so that no
caller waits for a probe. An endpoint is away in one of two ways:

- It is down (`EndpointFailure.down_since`): `GET /health` brings it back.
- It stalls (`Stall`): it is there, but left requests of one method unanswered for a whole timeout. Only an answer to
  such a request brings it back. In the background it is a cheap one, or the one that timed out; since that may be at
  fault itself, a caller's is then let through, too, one a growing interval.
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
"""Seconds that an endpoint that is away has to answer a probe."""
PROBE_PAUSES = 0.5, 5.0
"""Seconds between two probes, at least and at most,"""
PROBE_FACTOR = 5
"""and how many times as long as the probe itself."""
PROBES_END_AFTER = 600.0
"""Seconds without a call after which an endpoint is probed no more."""
OUTDATED_AFTER = 10.0
"""Seconds after which a failure says nothing of now: a call then waits for a probe, `PROBE_TIMEOUT` at most."""
REPEAT_AFTER = 5.0
"""Seconds until a request that timed out is sent again as a probe."""
ADJACENT = 0.5
"""Seconds between two requests that are one silence."""
WHOLE = 0.9
"""Share of a timeout that a silence lasts to be as long: part of the timeout goes into other requests."""


class Stall:
    """The silence of an endpoint that is there, but leaves requests of one method unanswered.

    Attributes: `probe` is a request that shows whether it is over, and `is_cheap` or the one that timed out; `cause` is
    what is known of the endpoint.
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
        """Whether a request timed out, and none was answered since."""
        return self._until > self._answered_at

    @property
    def seconds(self) -> float:
        """How long requests have been unanswered; 0 if it is over."""
        return self._until - self._since if self.is_on else 0.0

    @property
    def is_probed(self) -> bool:
        """Whether it is time for a probe."""
        since = self._next_trial_at + (0.0 if self.is_cheap else REPEAT_AFTER)
        return self.is_on and time.monotonic() >= since

    def note(self, sent_at: float, cause: str, probe: Message, *, is_cheap: bool) -> None:
        """Note that a request timed out that was sent at `sent_at`, on `time.monotonic()`."""
        if self._answered_at > sent_at:
            return
        now = time.monotonic()
        if not self.is_on or sent_at > self._until + ADJACENT:
            self._since = sent_at
        if sent_at > self._until:  # else it is of the same wave as the one before
            pause = backoff(EJECTION_FIRST, EJECTION_MOST, self._times - 1) if self._times else 0.0
            self._next_trial_at = now + pause
            self._times += 1
        self._since = min(self._since, sent_at)
        self._until = now
        self.cause, self.probe, self.is_cheap = cause, probe, is_cheap

    def try_out(self, timeout: float) -> bool:
        """Return whether the request of a caller who waits for `timeout` seconds is to show whether it is over."""
        now = time.monotonic()
        if self.is_cheap or now < max(self._next_trial_at, self._tried_until):
            return False
        self._tried_until = now + timeout + EJECTION_FIRST
        return True

    def is_answered(self, *, by_probe: bool = False) -> None:
        """Note an answer; one to a probe ends the stall, but the next one is as long as if it had gone on."""
        self._answered_at = time.monotonic()
        if not by_probe:
            self._times = 0


class Outage:
    """Whether a service is away, and the probes by which it is found to be back.

    A call waits for a service that is down no longer than its timeout from the moment the service went, whenever it
    comes itself, and less where connections are refused.

    Args:
        endpoints: says which there are now.
        refused_timeout: seconds for which refused connections are waited for at most.
    """

    def __init__(self, endpoints: Callable[[], Sequence[Endpoint]], refused_timeout: float) -> None:
        self._endpoints = endpoints
        self._refused_timeout = refused_timeout
        self._probes: asyncio.Task[None] | None = None
        self._asked_at = 0.0

    def ends_in(self, endpoints: Sequence[Endpoint], deadline: SharedDeadline) -> float:
        """Return the seconds that a call waits for a service that is down, none of whose endpoints comes back.

        Returns:
            0 or less where it is to be told at once; infinity where one of the endpoints is not down.
        """
        for one in endpoints:
            if one.incident.down_since == math.inf:
                return math.inf
        timeout = deadline.timeout
        brief = min(timeout, self._refused_timeout)
        ends = [min(one.incident.down_since + timeout, one.incident.refusing_since + brief) for one in endpoints]
        return max(ends) - time.monotonic()

    def raise_if_stalled(self, method: str, deadline: SharedDeadline) -> None:
        """Return where a new request may be sent, or is to show whether a stall is over.

        Raises:
            UnreachableError: all endpoints that take requests stall, for as long as the call would wait.
        """
        endpoints = self._endpoints()
        if not any(one.stalls[method].is_on for one in endpoints):
            return
        allowed = deadline.allowed
        there = [one for one in endpoints if one.incident.down_since == math.inf]
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
        """Have the endpoints probed from now on; wait for that only where the last failure was long ago."""
        self.probe()
        failed_at = max(one.incident.noted_at for one in self._endpoints())
        if self._probes is not None and time.monotonic() > failed_at + OUTDATED_AFTER:
            await asyncio.wait((self._probes,), timeout=min(PROBE_TIMEOUT, max(0.0, deadline.remaining())))

    def probe(self) -> None:
        """Have the endpoints probed from now on, until they are back or nobody has called for long."""
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
            is_down = any(one.incident.down_since < math.inf for one in away)
            await asyncio.sleep(min(max(least, PROBE_FACTOR * (ended - began)), most) if is_down else most)

    def close(self) -> None:
        """End the probes."""
        if self._probes is not None:
            self._probes.cancel()
