"""A service behind one or several equivalent URLs: load balancing, failover and retries.

Only this module selects endpoints and retries requests, with three exceptions. A judge is asked again if its verdict
cannot be read. `core.batching` splits a failed batch to isolate a bad sample. `core.batching` also sends a failed call
again if a caller with more time has joined the call meanwhile.

`message` classifies replies, and `endpoint` updates the state of the endpoint. The rules:

1. **Load balancing**: a request goes to the endpoint with the fewest requests in flight. If all endpoints are at their
   limit (`limiter`), it waits in a queue.
2. **Failover**: after a failure, the request goes immediately to another endpoint that is neither paused nor ejected.
   Failover does not use the retry budget.
3. **Overload**: if no endpoint is left, the request is retried until the deadline; the limiters control the pace. A
   `Retry-After` beyond the deadline ends the request.
4. **Outage**: the timeout of each request counts from the start of the outage. Once it has passed, requests fail fast
   until a background probe succeeds (`outage`).
5. **Invalid replies** are retried `max_retries` times with growing pauses. A retry budget limits these retries to a
   tenth of all requests, plus ten. While an endpoint gives invalid replies to all requests, it gets only one retry at a
   time, as a trial; once a request succeeds, all retries continue. Behind our gateway, a retry is addressed to another
   replica by number, and does not use the budget.
6. **Rejections** are final. If the key, path or model is rejected, all endpoints are tried first (twice after a 404).
7. **Ejection**, as in Envoy's outlier detection: after three failures in a row, or ten replies with status 429, 503 or
   529 in a row, an endpoint is not used for an interval that grows with each ejection. At most half of the endpoints
   are ejected. After the interval, a probe and a single request test for recovery.
8. **Hedging**: a stuck request is sent again, which uses the retry budget. The budget is refunded if the hedge is
   answered first. While the budget is empty, up to one hedge per second is still sent.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import aiohttp

from rewardstack.core.deadline import AttemptTimeout, SharedDeadline
from rewardstack.endpoints import CHECK_INTERVAL
from rewardstack.errors import (
    DeadlineError,
    OverloadError,
    RejectedError,
    ReplyError,
    ServiceError,
    UnreachableError,
)
from rewardstack.transport import timing
from rewardstack.transport.endpoint import Endpoint, LatencyTracker
from rewardstack.transport.http import authorization
from rewardstack.transport.message import DOWN, LIMITING, REPLICA_STATUSES, Message
from rewardstack.transport.outage import Outage
from rewardstack.transport.reply_faults import retry_pause
from rewardstack.transport.wait_queue import NONE_TRIED, Failures, WaitQueue

NOT_FOUND = 404
"""HTTP status for an unknown path or model."""
NOTHING_SENT = "the timeout ended before a request was sent; set a longer timeout"
"""State of a pool without requests and failures, for the error about a timeout."""

Location = tuple[tuple[str, ...], str]
"""Base URLs of equivalent endpoints, and their API key."""


class RetryBudget:
    """Limits retries to a tenth of the load, so that retries do not overload a service that answers with errors.

    The budget starts with `RETRY_RESERVE` retries. Each request adds a tenth of a retry, up to 100 retries.
    """

    def __init__(self) -> None:
        self._tokens = timing.RETRY_RESERVE
        self._spent_at = -math.inf

    def earn(self, retries: float = timing.RETRY_SHARE) -> None:
        """Add `retries` to the budget: for a request, or to refund a hedge that was useful."""
        self._tokens = min(self._tokens + retries, timing.RETRY_RESERVE * 10)

    def spend(self, interval: float = math.inf) -> bool:
        """Take one retry from the budget; return whether the retry is allowed.

        Args:
            interval: if the budget is empty, a retry is still allowed this many seconds after the last retry.
        """
        now = time.monotonic()
        if self._tokens < 1.0 and now - self._spent_at < interval:
            return False
        self._tokens, self._spent_at = max(0.0, self._tokens - 1.0), now
        return True


class EndpointPool:
    """Equivalent endpoints that share an API key.

    Args:
        urls: base URLs of the endpoints.
        api_key: bearer token for all endpoints; empty for none.
        session: HTTP session.
        ceiling: maximum number of requests in flight to one endpoint.
        max_retries: maximum number of retries of a request after invalid replies.
        find_location: returns the current URLs and key of a service that may move; None for fixed URLs.
        refused_timeout: maximum seconds to wait while connections are refused; ignored if the service may move.
    """

    def __init__(
        self,
        urls: Sequence[str],
        api_key: str,
        session: aiohttp.ClientSession,
        ceiling: int,
        max_retries: int,
        find_location: Callable[[], Location] | None = None,
        refused_timeout: float = math.inf,
    ) -> None:
        self.last_progress = 0.0
        self._endpoints: list[Endpoint] = []
        self._outage = Outage(lambda: self._endpoints, refused_timeout if find_location is None else math.inf)
        self._new_endpoint = partial(
            Endpoint,
            ceiling=ceiling,
            session=session,
            latency=LatencyTracker(),
            describe_wait=self._describe_wait,
            may_eject=self._may_eject,
            has_others=lambda: len(self._endpoints) > 1,
            on_stall=self._outage.probe,
            moves=find_location is not None,
        )
        self._find_location = find_location
        self._checked_at = time.monotonic()
        self._location: Location = tuple(urls), api_key
        self._endpoints = [self._new_endpoint(url, authorization(api_key)) for url in urls]
        self._retired: list[Endpoint] = []
        self._max_retries = max_retries
        self._budget = RetryBudget()
        self._queue = WaitQueue(
            lambda: self._endpoints,
            self._seconds_left,
            self._release_slot,
            None if find_location is None else self._check_location,
        )

    async def ask(self, message: Message, deadline: SharedDeadline) -> Any:
        """Send a message, with retries, and return its result.

        Args:
            message: the message to send.
            deadline: the deadline, which all callers of the request share.

        Raises:
            DeadlineError: no valid answer came in time; the message has the last error.
            UnreachableError: the service has been down or stalled for about the timeout of the call, or has refused
                connections for `refused_timeout`.
            OverloadError: the request was sent as a trial to a stalled service (`Outage`), and was refused.
            RejectedError: the service rejected the request.
            ReplyError: the reply is invalid, and no retry is left.
            BudgetError: `message.admit` does not allow an attempt.
        """
        self._budget.earn()
        deadline.set_service(self)
        failures: Failures | None = None
        timeout = AttemptTimeout(deadline, time.monotonic())
        self._check_location()
        is_trial = self._outage.raise_if_stalled(message.method, deadline)
        while True:
            endpoint = await self._wait_for_slot(deadline, failures)
            # Only an answer restarts the timeout. A slot that a failure has freed does not: otherwise, each batch of
            # requests would wait for a whole timeout while the service answers nothing.
            if timeout.since < self.last_progress:
                timeout = deadline.start_attempt()
            if self._outage.is_hopeless(message.method, timeout):
                self._release_slot(endpoint)
                raise self._timeout_error(failures)
            try:
                return await self._attempt(endpoint, message, timeout, failures)
            except (OverloadError, UnreachableError, RejectedError, ReplyError) as error:
                if (isinstance(error, RejectedError) and not error.is_misplaced) or (
                    is_trial and isinstance(error, OverloadError)
                ):
                    raise
                failures = failures or Failures(message)
                failures.record(endpoint, error, timeout.since)
            await self._wait_until_retry(message, failures, deadline)
            self._check_location()

    async def _attempt(
        self, endpoint: Endpoint, message: Message, timeout: AttemptTimeout, failures: Failures | None
    ) -> Any:
        """Send a message to an endpoint with a reserved slot; return the result, which may be the hedge's."""
        sent = message if failures is None else message.to_replica(failures.replica)
        is_hedged = message.may_be_repeated or len(self._endpoints) > 1
        hedge = partial(self._start_hedge, endpoint, message, timeout) if is_hedged else None
        try:
            result = await endpoint.ask(sent, timeout, hedge)
        except RejectedError:
            self.last_progress = time.monotonic()
            raise
        else:
            self.last_progress = time.monotonic()
            if failures is not None:
                self._record_outcomes(failures, endpoint)
            return result
        finally:
            self._release_slot(endpoint)

    def _record_outcomes(self, failures: Failures, acceptor: Endpoint) -> None:
        """Record that `acceptor` accepted a request; endpoints that rejected the same request before are at fault."""
        for endpoint, error in failures.faulty.items():
            if endpoint is not acceptor and isinstance(error, RejectedError):
                endpoint.record_wrong_rejection(error)
        if failures.replica:
            acceptor.replicas.record_success(failures.replica)

    def _may_eject(self, endpoint: Endpoint) -> bool:
        """Return whether at least half of all endpoints stay available if this endpoint is ejected."""
        unavailable = sum(not other.limiter.is_available for other in self._endpoints if other is not endpoint)
        return 2 * (unavailable + 1) <= len(self._endpoints)

    async def _wait_until_retry(self, message: Message, failures: Failures, deadline: SharedDeadline) -> None:
        """Wait until a failed request may be retried; return immediately if another endpoint is available.

        Raises:
            ServiceError: the last error, if it is final.
        """
        if any(endpoint.limiter.is_available for endpoint in self._endpoints if endpoint not in failures.tried):
            return
        failures.tried = NONE_TRIED
        error = failures.error
        if isinstance(error, UnreachableError):
            return  # `Outage` and the limiters control the wait
        if isinstance(error, OverloadError):
            await self._wait_for_overload(error, failures, deadline)
            return
        failures.rounds += 1
        try:
            if isinstance(error, RejectedError):
                await self._wait_for_model(error, message, failures, deadline)
            elif isinstance(error, ReplyError):
                await self._wait_for_valid_reply(error, message, failures, deadline)
        except (RejectedError, ReplyError):
            if not self._may_recover(failures, deadline):
                raise
            failures.excludes_faulty = True

    def _may_recover(self, failures: Failures, deadline: SharedDeadline) -> bool:
        """Return whether an endpoint that is not in `failures.faulty` may accept the request before the deadline."""
        others = [endpoint for endpoint in self._endpoints if endpoint not in failures.faulty]
        return bool(others) and deadline.remaining() > 0 and self._outage.time_left(others, deadline) > 0

    async def _wait_for_overload(self, error: OverloadError, failures: Failures, deadline: SharedDeadline) -> None:
        """Wait after an overload reply, unless the limiters control the wait.

        Behind a gateway, select another replica, and wait only if no replica is known to accept requests.

        Raises:
            DeadlineError: the server's Retry-After is beyond the deadline.
        """
        if error.retry_after > deadline.remaining():
            why = f"{error}; Retry-After of {error.retry_after:.0f} s is beyond the deadline"
            raise DeadlineError(why) from error
        replicas = failures.endpoint.replicas
        if (
            error.status in REPLICA_STATUSES
            and failures.rounds < self._max_retries
            and await failures.endpoint.is_gateway(deadline.remaining())
        ):
            failures.rounds += 1
            failures.replica = replicas.select(failures.replica)
            if replicas.preferred:
                return
        elif error.status in LIMITING | DOWN:
            failures.replica = ""
            return
        await asyncio.sleep(min(failures.back_off(), max(0.0, deadline.remaining())))

    async def _wait_for_model(
        self, error: RejectedError, message: Message, failures: Failures, deadline: SharedDeadline
    ) -> None:
        """Wait before the retry of a request whose key, path or model was rejected; raise `error` if it is final."""
        reply_faults = failures.endpoint.reply_faults
        reply_faults.record()
        if message.is_optional:
            raise error
        if await failures.endpoint.is_gateway(deadline.remaining()):
            await self._switch_replica(error, failures, deadline)
        elif error.status == NOT_FOUND and failures.rounds == 1 and not reply_faults.is_final:
            await _sleep(timing.LOADING_PAUSE, error, deadline)
        else:
            raise error

    async def _switch_replica(self, error: ServiceError, failures: Failures, deadline: SharedDeadline) -> None:
        """Select another replica behind a gateway; wait unless this replica is known to accept requests.

        Raises:
            ServiceError: `error`, if the request may not be retried.
        """
        replicas = failures.endpoint.replicas
        failures.replica = replicas.select(failures.replica)
        if failures.rounds > self._max_retries or replicas.are_faulty:
            raise error
        if not replicas.preferred:
            await _sleep(retry_pause(failures.rounds), error, deadline)

    async def _wait_for_valid_reply(
        self, error: ReplyError, message: Message, failures: Failures, deadline: SharedDeadline
    ) -> None:
        """Wait until a request may be retried after an invalid reply; raise `error` if it is final."""
        reply_faults = failures.endpoint.reply_faults
        if message.no_retry:
            raise error
        if await failures.endpoint.is_gateway(deadline.remaining()):
            await self._switch_replica(error, failures, deadline)
            return
        if failures.rounds > self._max_retries or reply_faults.is_final:
            raise error
        await _sleep(retry_pause(failures.rounds), error, deadline)
        while reply_faults.recovered_at < failures.failed_at:
            if not reply_faults.is_faulty:
                if not self._budget.spend():
                    raise error
                return
            left = deadline.remaining()
            if reply_faults.is_final or left <= 0:
                raise error
            if reply_faults.is_trial_due and self._budget.spend():
                reply_faults.start_trial()
                return
            await reply_faults.wait(left)

    def _start_hedge(self, stuck: Endpoint, message: Message, timeout: AttemptTimeout) -> asyncio.Task[Any] | None:
        """Send a stuck request again to the least loaded endpoint, and return the task of this hedge.

        Return None if no endpoint has a free slot, or the retry budget is empty.

        Up to `MAX_EXCESS_HEDGES` hedges may exceed an endpoint's limit. A hedge may be the trial request of an endpoint
        whose pause is over, because there may be no other request for the trial.
        """
        others = [one for one in self._endpoints if one is not stuck and (one.limiter.is_available or one.is_trial_due)]
        goes_to_same = message.may_be_repeated and stuck.limiter.is_available
        default = stuck if goes_to_same and (len(self._endpoints) == 1 or stuck.is_known_gateway) else None
        endpoint = min(others, key=lambda one: one.in_flight - one.limiter.limit, default=default)
        if (
            endpoint is None
            or endpoint.in_flight >= endpoint.limiter.limit + timing.MAX_EXCESS_HEDGES
            or not self._budget.spend(timing.HEDGE_INTERVAL)
        ):
            return None
        endpoint.in_flight += 1
        hedge = asyncio.create_task(self._run_hedge(endpoint, message, timeout))
        # The task cannot release its slot itself: it may be cancelled before it starts.
        hedge.add_done_callback(lambda _: self._release_slot(endpoint))
        return hedge

    async def _run_hedge(self, endpoint: Endpoint, message: Message, timeout: AttemptTimeout) -> Any:
        replicas = endpoint.replicas
        number = replicas.select("") if endpoint.is_known_gateway else ""
        try:
            result = await endpoint.ask(message.to_replica(number), timeout)
        except RejectedError:
            self.last_progress = time.monotonic()
            raise
        except asyncio.CancelledError:
            replicas.demote(number)
            raise
        replicas.record_success(number)
        self.last_progress = time.monotonic()
        self._budget.earn(1.0)
        return result

    def _release_slot(self, endpoint: Endpoint) -> None:
        endpoint.in_flight -= 1
        if endpoint in self._retired and not endpoint.in_flight:
            self._retired.remove(endpoint)
            endpoint.close()
        self._queue.assign_slots()

    def update_location(self) -> None:
        """Switch to the service's current URLs and key.

        Queued requests go to the new URLs. Requests in flight do so only if they fail.

        Raises:
            SettingsError: the proxy that environment variables set for a new URL is not an HTTP proxy.
        """
        self._checked_at = time.monotonic()
        location = self._location if self._find_location is None else self._find_location()
        urls, api_key = location
        if location == self._location or not urls:
            return
        kept = {endpoint.url: endpoint for endpoint in self._endpoints if api_key == self._location[1]}
        previous = self._endpoints
        self._endpoints = [kept.get(url) or self._new_endpoint(url, authorization(api_key)) for url in urls]
        self._location = location
        for endpoint in previous:
            if endpoint.in_flight and endpoint not in self._endpoints:
                self._retired.append(endpoint)
            elif endpoint not in self._endpoints:
                endpoint.close()
        self.last_progress = self._checked_at  # restart the timeout of all waiters
        self._queue.assign_slots()

    def _check_location(self) -> None:
        """Call `update_location` if it was not called within the last `CHECK_INTERVAL` seconds."""
        if self._find_location is not None and time.monotonic() >= self._checked_at + CHECK_INTERVAL:
            self.update_location()

    async def _wait_for_slot(self, deadline: SharedDeadline, failures: Failures | None) -> Endpoint:
        """Wait for a slot and return its endpoint, with the slot reserved for the caller."""
        while deadline.remaining() > 0:
            if self._outage.time_left(self._endpoints, deadline) <= 0:
                await self._raise_if_down(deadline)
            if failures is not None and failures.excludes_faulty and not self._may_recover(failures, deadline):
                raise failures.error
            endpoint = None if self._queue else self._queue.reserve_slot(failures)
            if endpoint is not None:
                if failures is None:
                    deadline.restart()
                return endpoint
            deadline.enter_queue(self)
            try:
                endpoint = await self._queue.wait(deadline, failures)
            finally:
                deadline.leave_queue(self)
            if endpoint is not None:
                return endpoint
        raise self._timeout_error(failures)

    def _seconds_left(self, deadline: SharedDeadline, failures: Failures | None) -> float:
        """Return the estimated seconds until a queued request gives up."""
        endpoints: Sequence[Endpoint] = self._endpoints
        if failures is not None and failures.excludes_faulty:
            endpoints = [endpoint for endpoint in endpoints if endpoint not in failures.faulty]
        return min(deadline.remaining(), self._outage.time_left(endpoints, deadline)) if endpoints else 0.0

    async def _raise_if_down(self, deadline: SharedDeadline) -> None:
        """Probe the service; if it is still down, wake all waiters and raise UnreachableError."""
        await self._outage.wait_for_probe(deadline)
        if self._outage.time_left(self._endpoints, deadline) > 0:
            return
        cause = self.cause()
        self._queue.wake_all()
        down = time.monotonic() - max(endpoint.failure.down_since for endpoint in self._endpoints)
        raise UnreachableError(f"{cause}; unavailable for {down:.1f} s, failing fast until a health probe succeeds")

    def _timeout_error(self, failures: Failures | None) -> DeadlineError:
        """Return the error about a request that was not answered in time; record stalls of overloaded endpoints."""
        if failures is not None:
            for endpoint in self._endpoints:
                endpoint.record_refusals(failures.message, failures.since)
        cause, last_error = self.cause(), None if failures is None else failures.error
        if last_error is not None and cause == NOTHING_SENT:
            cause = str(last_error)
        last = "" if last_error is None or str(last_error) in cause else f"{last_error}; "
        return DeadlineError(f"no answer in time; last known state: {last}{cause}")

    def cause(self) -> str:
        """Return the known state of each endpoint, and the number of queued requests."""
        causes = [cause for endpoint in (*self._endpoints, *self._retired) if (cause := endpoint.cause())]
        if len(self._queue) > 1:
            causes.append(f"{len(self._queue)} requests are queued")
        return "; ".join(causes) or NOTHING_SENT

    def _describe_wait(self) -> str:
        """Return the longest time that callers still wait, e.g. "for up to 30 s"; empty if no caller waits."""
        endpoints = (*self._endpoints, *self._retired)
        if not self._queue and not any(endpoint.in_flight for endpoint in endpoints):
            return ""
        deadlines = [*self._queue.deadlines, *(one for endpoint in endpoints for one in endpoint.deadlines)]
        seconds = math.ceil(max((self._seconds_left(deadline, None) for deadline in deadlines), default=0.0))
        return f"for up to {max(1, seconds)} s"

    def lower_limit(self, requests: int) -> None:
        """Lower each endpoint's limit to `requests`, the capacity that a server reports.

        Successes raise the limit again: an endpoint may be a gateway with several such servers behind it.
        """
        for endpoint in self._endpoints:
            endpoint.limiter.lower_limit(requests)

    def close(self) -> None:
        """Stop the timers and background tasks; requests in flight are not ended."""
        self._queue.close()
        self._outage.close()
        for endpoint in (*self._endpoints, *self._retired):
            endpoint.close()


async def _sleep(seconds: float, error: ServiceError, deadline: SharedDeadline) -> None:
    """Wait before a retry; raise `error` if the deadline comes first."""
    left = deadline.remaining()
    await asyncio.sleep(max(0.0, min(seconds, left)))
    if left <= seconds:
        raise error
