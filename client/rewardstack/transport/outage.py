"""Limits how long calls wait during an outage of a service, and detects its recovery.

The timeout of each call counts from the start of the outage. Once it has passed, calls fail fast while a background
task probes the endpoints. An endpoint is unavailable in one of two ways:

- Down (`EndpointFailure.down_since`): it recovers with an answer to `GET /health`.
- Stalled (`Stall`): it is up, but for a whole timeout, it left requests of one HTTP method unanswered or refused all of
  them as overload. Any answer to a request of this method ends the stall, except an overload. The background probe is a
  cheap request or, if there is none, the request that timed out. That request may have caused the stall, so requests of
  callers are then also sent as trials, one at a time and at growing intervals.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from rewardstack.core.deadline import AttemptTimeout, SharedDeadline
from rewardstack.errors import UnreachableError
from rewardstack.transport import timing
from rewardstack.transport.limiter import backoff

if TYPE_CHECKING:
    from rewardstack.transport.endpoint import Endpoint
    from rewardstack.transport.message import Message


class Stall:
    """The stall of an endpoint that leaves requests of one HTTP method unanswered, or refuses all of them as overload.

    Attributes:
        probe: request that tests whether the stall is over.
        is_cheap: whether `probe` is a cheap request rather than the request that timed out.
        cause: known state of the endpoint at the last timeout.
    """

    def __init__(self) -> None:
        self.probe: Message | None = None
        self.is_cheap = False
        self.cause = ""
        self._answered_at = self._since = self._last_timeout_at = -math.inf
        self._times = 0
        self._next_trial_at = self._trial_until = 0.0

    @property
    def is_active(self) -> bool:
        """Whether a request has timed out, and no request was answered since then."""
        return self._last_timeout_at > self._answered_at

    @property
    def seconds(self) -> float:
        """Seconds from the start of the stall to the last timeout; 0 if the stall is over."""
        return self._last_timeout_at - self._since if self.is_active else 0.0

    @property
    def is_probe_due(self) -> bool:
        """Whether `probe` may be sent now; a probe that is not cheap has to wait `REPEAT_AFTER` seconds longer."""
        since = self._next_trial_at + (0.0 if self.is_cheap else timing.REPEAT_AFTER)
        return self.is_active and time.monotonic() >= since

    def record(self, sent_at: float, cause: str, probe: Message, *, is_cheap: bool) -> None:
        """Record the timeout of a request that was sent at `sent_at`, on `time.monotonic()`."""
        if self._answered_at > sent_at:
            return
        now = time.monotonic()
        if not self.is_active or sent_at > self._last_timeout_at + timing.MAX_GAP:
            self._since = sent_at
        if sent_at > self._last_timeout_at:  # else both requests were in flight at the same time
            pause = backoff(timing.EJECTION_FIRST, timing.EJECTION_MAX, self._times - 1) if self._times else 0.0
            self._next_trial_at = now + pause
            self._times += 1
        self._since = min(self._since, sent_at)
        self._last_timeout_at = now
        self.cause, self.probe, self.is_cheap = cause, probe, is_cheap

    def start_trial(self, timeout: float) -> bool:
        """Return whether to send a caller's request as a trial, to test whether the stall is over.

        Args:
            timeout: the caller's timeout in seconds. No other trial starts before it has passed.
        """
        now = time.monotonic()
        if self.is_cheap or now < max(self._next_trial_at, self._trial_until):
            return False
        self._trial_until = now + timeout + timing.EJECTION_FIRST
        return True

    def record_answer(self, *, by_probe: bool = False) -> None:
        """Record an answer, which ends the stall; only an answer to a real request resets the backoff."""
        self._answered_at = time.monotonic()
        if not by_probe:
            self._times = 0


class Outage:
    """Tracks the outage of a service and probes its endpoints.

    The timeout of each call counts from the start of the outage, and is shorter if connections are refused.

    Args:
        endpoints: returns the current endpoints.
        refused_timeout: maximum seconds to wait while connections are refused.
    """

    def __init__(self, endpoints: Callable[[], Sequence[Endpoint]], refused_timeout: float) -> None:
        self._endpoints = endpoints
        self._refused_timeout = refused_timeout
        self._probes: asyncio.Task[None] | None = None
        self._called_at = 0.0

    def time_left(self, endpoints: Sequence[Endpoint], deadline: SharedDeadline) -> float:
        """Return how many seconds a call still waits for these endpoints.

        Returns:
            0 or less if the call has to fail fast; infinity if one of the endpoints is not down.
        """
        for endpoint in endpoints:
            if endpoint.failure.down_since == math.inf:
                return math.inf
        timeout = deadline.timeout
        refused_timeout = min(timeout, self._refused_timeout)
        ends = [
            min(endpoint.failure.down_since + timeout, endpoint.failure.refusing_since + refused_timeout)
            for endpoint in endpoints
        ]
        return max(ends) - time.monotonic()

    def _stalled(self, method: str, deadline: SharedDeadline) -> Sequence[Endpoint]:
        """Return all available endpoints, if all have been stalled for `MIN_SHARE` of the call's timeout.

        Otherwise, return an empty sequence.

        Args:
            method: HTTP method of the call.
            deadline: deadline of the call.
        """
        endpoints = self._endpoints()
        if not any(endpoint.stalls[method].is_active for endpoint in endpoints):
            return ()
        up = [endpoint for endpoint in endpoints if endpoint.failure.down_since == math.inf]
        available = [endpoint for endpoint in up if endpoint.limiter.is_available] or up
        least = timing.MIN_SHARE * deadline.effective_timeout
        return available if all(endpoint.stalls[method].seconds >= least for endpoint in available) else ()

    def raise_if_stalled(self, method: str, deadline: SharedDeadline) -> bool:
        """Raise if all available endpoints are stalled, unless this request should test for recovery.

        Returns:
            Whether the request is sent as a trial that tests for recovery.

        Raises:
            UnreachableError: all available endpoints have been stalled for at least `MIN_SHARE` of the call's timeout.
        """
        stalled = self._stalled(method, deadline)
        if not stalled:
            return False
        self.probe()
        ready = [one.stalls[method] for one in stalled if one.limiter.admits(one.in_flight)]
        if any(stall.start_trial(deadline.effective_timeout) for stall in ready):
            return True
        seconds = max(one.stalls[method].seconds for one in stalled)
        causes = "; ".join(one.stalls[method].cause for one in stalled)
        raise UnreachableError(
            f"{causes}; no {method} succeeded for {seconds:.1f} s, failing fast until a request succeeds"
        )

    def is_hopeless(self, method: str, timeout: AttemptTimeout) -> bool:
        """Return whether a queued call comes too late: the service is stalled, and the call has little time left."""
        if not self._stalled(method, timeout.deadline):
            return False
        return timeout.remaining() < (1 - timing.MIN_SHARE) * timeout.deadline.effective_timeout

    async def wait_for_probe(self, deadline: SharedDeadline) -> None:
        """Start probing; if the last failure is outdated, wait up to `PROBE_TIMEOUT` for the endpoints to recover."""
        self.probe()
        failed_at = max(endpoint.failure.last_error_at for endpoint in self._endpoints())
        if self._probes is not None and time.monotonic() > failed_at + timing.OUTDATED_AFTER:
            await asyncio.wait((self._probes,), timeout=min(timing.PROBE_TIMEOUT, max(0.0, deadline.remaining())))

    def probe(self) -> None:
        """Probe in the background until the endpoints have recovered, or no call came for `PROBING_TIMEOUT`."""
        self._called_at = time.monotonic()
        if self._probes is None or self._probes.done():
            self._probes = asyncio.create_task(self._probe())

    async def _probe(self) -> None:
        shortest, longest = timing.PROBE_PAUSES
        while unavailable := [endpoint for endpoint in self._endpoints() if endpoint.is_unavailable]:
            began = time.monotonic()
            await asyncio.gather(
                *(endpoint.probe(timing.PROBE_TIMEOUT) for endpoint in unavailable), return_exceptions=True
            )
            ended = time.monotonic()
            if ended > self._called_at + timing.PROBING_TIMEOUT or not any(
                endpoint.is_unavailable for endpoint in unavailable
            ):
                return
            is_down = any(endpoint.failure.down_since < math.inf for endpoint in unavailable)
            await asyncio.sleep(
                min(max(shortest, timing.PROBE_FACTOR * (ended - began)), longest) if is_down else longest
            )

    def close(self) -> None:
        """Stop probing."""
        if self._probes is not None:
            self._probes.cancel()
