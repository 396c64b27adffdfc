"""A service behind one or several equivalent URLs: load balancing, failover and retries.

This module alone selects endpoints and decides about retries. Other modules send again in three cases only: a judge is
asked once more for an unreadable verdict, a batch is split to isolate a bad sample, and a failed call is repeated for a
caller that joined with more time (`core.batching`). `reply` classifies replies, and `endpoint` updates the endpoint's
state accordingly. A request is handled as follows:

1. It goes to the endpoint with the fewest requests in flight, or queues until an endpoint has capacity (`limiter`).
2. After a failure it goes immediately to another endpoint that is neither paused nor ejected, if there is one. Such a
   failover is not charged to the retry budget.
3. If no endpoint is left, overload is retried until the deadline, paced by the limiters. A `Retry-After` beyond the
   deadline ends the request.
4. Requests wait during an outage, but all of them together for one timeout, which counts from the start of the outage.
   Later requests fail fast until a background probe succeeds (`outage`).
5. An invalid reply is retried `max_retries` times with growing pauses, from a retry budget (a tenth of all requests,
   plus ten). While an endpoint gives invalid replies to all requests, one trial request at a time is sent; once a trial
   succeeds, all requests continue. Behind our gateway retries address another replica by number, and are not charged.
6. A rejection is final. If it is about the key, path or model, all endpoints are tried first (twice after a 404).
7. As in Envoy's outlier detection, an endpoint is ejected (not used for a growing interval) after three failures in a
   row, or ten for 429, 503 and 529. At most half of the endpoints are ejected. After the interval, a probe and a single
   request test for recovery.
8. A stuck request is hedged, charged to the retry budget. A hedge that is answered first is refunded. An empty budget
   still gives one hedge per second.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

import aiohttp

from rewardstack.core.deadline import AttemptTimeout, SharedDeadline
from rewardstack.endpoints import LOOK
from rewardstack.errors import (
    DeadlineError,
    OverloadError,
    RejectedError,
    ReplyError,
    ServiceError,
    SettingsError,
    UnreachableError,
)
from rewardstack.transport.endpoint import Endpoint, LatencyTracker, Message, retry_pause
from rewardstack.transport.http import authorization
from rewardstack.transport.limiter import BACKOFF_FIRST, BACKOFF_MOST, backoff
from rewardstack.transport.outage import Outage
from rewardstack.transport.reply import DOWN, LIMITING, STEERED

RETRY_SHARE = 0.1
"""Number of retries that each request adds to the retry budget."""
RETRY_RESERVE = 10.0
"""Initial retry budget, in retries."""
PAST_THE_LIMIT = 3
"""Maximum number of hedges that an endpoint accepts beyond its limit, to find out which server hangs."""
HEDGE_PACE = 1.0
"""Seconds between hedges while the retry budget is empty: without any, requests on a server that hangs would stay there
until their timeout, because they earn nothing while they wait."""
LOADING_PAUSE = 2.5
"""Seconds before the retry after a 404: a model may still be loading."""
NOT_FOUND = 404
"""HTTP status for an unknown path or model."""

Place = tuple[tuple[str, ...], str]
"""Base URLs of equivalent endpoints, and their API key."""
Turn = asyncio.Future["Endpoint | None"]
"""Resolves to an endpoint with a slot for the waiter; None if the waiter has to check whether to keep waiting."""
Tried = frozenset[Endpoint]
"""Endpoints that failed a request."""
NONE_TRIED: Tried = frozenset()


class RetryBudget:
    """Limits retries to a tenth of the load, so that retries do not overload a service that answers with errors.

    The budget starts with `RETRY_RESERVE` retries. Each request adds a tenth of a retry, up to 100 retries.
    """

    def __init__(self) -> None:
        self._tokens = RETRY_RESERVE
        self._spent_at = -math.inf

    def earn(self, retries: float = RETRY_SHARE) -> None:
        """Add `retries` to the budget: for a request, or to refund a hedge that was useful."""
        self._tokens = min(self._tokens + retries, RETRY_RESERVE * 10)

    def spend(self, pace: float = math.inf) -> bool:
        """Take one retry from the budget; return whether it had one.

        Args:
            pace: seconds since the last retry after which an empty budget still gives one.
        """
        now = time.monotonic()
        if self._tokens < 1.0 and now - self._spent_at < pace:
            return False
        self._tokens, self._spent_at = max(0.0, self._tokens - 1.0), now
        return True


class Failures:
    """The failures of one request so far.

    Attributes:
        error: the last error.
        endpoint: endpoint of the last error.
        at: time of the last error, on `time.monotonic()`.
        tried: endpoints that failed since the last pause; used again only if no other endpoint is available.
        faulty: last error of each endpoint that gave an invalid reply or rejected the key, path or model.
        is_over: whether the endpoints in `faulty` are no longer used.
        rounds: how often all endpoints have failed.
        pauses: number of backoff pauses after overload.
        replica: number of the replica behind a gateway to which the next retry goes; empty for any.
    """

    __slots__ = ("at", "endpoint", "error", "faulty", "is_over", "pauses", "replica", "rounds", "tried")

    def __init__(self) -> None:
        self.tried: Tried = NONE_TRIED
        self.faulty: dict[Endpoint, ReplyError | RejectedError] = {}
        self.is_over = False
        self.rounds = self.pauses = 0
        self.replica = ""

    def note(self, endpoint: Endpoint, error: ServiceError) -> None:
        """Record a failure."""
        self.endpoint, self.error, self.at = endpoint, error, time.monotonic()
        self.tried |= {endpoint}
        if isinstance(error, (ReplyError, RejectedError)):
            self.faulty[endpoint] = error

    def candidates(self, endpoints: Sequence[Endpoint]) -> Sequence[Endpoint]:
        """Return the endpoints that the request may go to next."""
        if self.is_over:
            return [one for one in endpoints if one not in self.faulty]
        return [one for one in endpoints if one not in self.tried and one.limiter.is_available] or endpoints

    def back_off(self) -> float:
        """Return the seconds of the next pause."""
        self.pauses += 1
        return backoff(BACKOFF_FIRST, BACKOFF_MOST, self.pauses - 1)


class WaitQueue:
    """A FIFO queue of requests that wait for a slot at an endpoint.

    Args:
        endpoints: returns the current endpoints.
        seconds_left: returns the seconds that a request still waits, given its deadline and failures.
        leave: releases the slot of a cancelled request.
        look: checks whether the service has moved; None for a service at a fixed address.
    """

    def __init__(
        self,
        endpoints: Callable[[], Sequence[Endpoint]],
        seconds_left: Callable[[SharedDeadline, Failures | None], float],
        leave: Callable[[Endpoint], None],
        look: Callable[[], None] | None,
    ) -> None:
        self._endpoints = endpoints
        self._seconds_left = seconds_left
        self._leave = leave
        self._look = look
        self._retries: dict[Turn, tuple[SharedDeadline, Failures]] = {}
        self._waiting: dict[Turn, tuple[SharedDeadline, None]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._first_gives_up_at = math.inf

    def __len__(self) -> int:
        return len(self._waiting) + len(self._retries)

    def take(self, failures: Failures | None = None) -> Endpoint | None:
        """Reserve a slot at the least loaded endpoint and return the endpoint; None if all are full.

        Args:
            failures: the failures of a retry; None for a new request.
        """
        endpoints = self._endpoints()
        some = endpoints if failures is None else failures.candidates(endpoints)
        free = [one for one in some if one.limiter.admits(one.in_flight)]
        if not free:
            return None
        endpoint = free[0] if len(free) == 1 else min(free, key=lambda one: (one.in_flight, random.random()))
        endpoint.in_flight += 1
        return endpoint

    async def wait(self, deadline: SharedDeadline, failures: Failures | None) -> Endpoint | None:
        """Wait for a slot and return its endpoint; None if the caller has to check whether to keep waiting.

        Args:
            deadline: the deadline that all callers of the request share.
            failures: the failures of a retry, which is served before new requests; None for a new request.
        """
        turn: Turn = asyncio.get_running_loop().create_future()
        if failures is None:
            self._waiting[turn] = deadline, None
        else:
            self._retries[turn] = deadline, failures
        if self._retries or len(self._waiting) == 1:
            self.assign_slots()
        self._watch(self._seconds_left(deadline, failures))
        try:
            return await turn
        except asyncio.CancelledError:
            self._remove(turn)
            if not turn.cancelled() and (endpoint := turn.result()) is not None:
                self._leave(endpoint)
            raise

    def _remove(self, turn: Turn) -> None:
        self._waiting.pop(turn, None)
        self._retries.pop(turn, None)

    def assign_slots(self) -> None:
        """Assign free slots to waiters; schedule the next check at the end of a pause, or when the service may move."""
        if self._retries:
            self._assign_to_retries()
        while self._waiting and self._assign(next(iter(self._waiting)), None):
            pass
        if self._waiting or self._retries:
            self._schedule_wake()

    def _assign_to_retries(self) -> None:
        without_slot: set[tuple[Tried, bool]] = set()
        for turn, (_, failures) in list(self._retries.items()):
            alike = failures.tried, failures.is_over
            if (NONE_TRIED, False) in without_slot:
                break
            if alike not in without_slot and not self._assign(turn, failures):
                without_slot.add(alike)

    def _assign(self, turn: Turn, failures: Failures | None) -> bool:
        """Assign a slot to a waiter; return whether the waiter left the queue, with a slot or cancelled."""
        if not turn.done():
            endpoint = self.take(failures)
            if endpoint is None:
                return False
            turn.set_result(endpoint)
        self._remove(turn)
        return True

    def wake_all(self) -> None:
        """Wake all waiters without a slot, so that each checks whether to keep waiting."""
        for turn in (*self._retries, *self._waiting):
            self._end(turn)

    def _end(self, turn: Turn) -> None:
        self._remove(turn)
        if not turn.done():
            turn.set_result(None)

    def _schedule_wake(self) -> None:
        if self._look is not None:
            self._wake_in(LOOK)
        for endpoint in self._endpoints():
            if endpoint.limiter.opens_at and (pause := endpoint.limiter.opens_at - time.monotonic()) > 0:
                self._wake_in(pause)

    def _wake_in(self, seconds: float) -> None:
        """Wake the queue in `seconds` at the latest; one timer for all waiters is cheaper than one for each."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(max(0.0, seconds) + 0.001, self._wake)

    def _watch(self, seconds: float) -> None:
        self._first_gives_up_at = min(self._first_gives_up_at, time.monotonic() + seconds)
        self._wake_in(seconds)

    def _wake(self) -> None:
        self._timer = None
        with suppress(SettingsError):  # the next call raises it
            if self._look is not None:
                self._look()
        self.assign_slots()
        if time.monotonic() < self._first_gives_up_at:
            self._wake_in(self._first_gives_up_at - time.monotonic())
            return
        self._first_gives_up_at = math.inf
        for turn, (deadline, failures) in (*self._retries.items(), *self._waiting.items()):
            left = self._seconds_left(deadline, failures)
            if left <= 0:
                self._end(turn)
            else:
                self._watch(left)

    def close(self) -> None:
        """Cancel the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class EndpointPool:
    """Equivalent endpoints that share an API key.

    Args:
        urls: base URLs of the endpoints.
        api_key: bearer token for all endpoints; empty for none.
        session: HTTP session.
        ceiling: maximum requests in flight to one endpoint.
        max_retries: maximum retries of a request after invalid replies.
        place_now: returns the current URLs and key of a service that may move; None for fixed URLs.
        refused_timeout: seconds to wait while connections are refused; ignored if the service may move.
    """

    def __init__(
        self,
        urls: Sequence[str],
        api_key: str,
        session: aiohttp.ClientSession,
        ceiling: int,
        max_retries: int,
        place_now: Callable[[], Place] | None = None,
        refused_timeout: float = math.inf,
    ) -> None:
        self.last_progress = 0.0
        self._endpoints: list[Endpoint] = []
        self._outage = Outage(lambda: self._endpoints, refused_timeout if place_now is None else math.inf)
        self._new_endpoint = partial(
            Endpoint,
            ceiling=ceiling,
            session=session,
            latency=LatencyTracker(),
            is_awaited=self._is_awaited,
            may_eject=self._may_eject,
            has_others=lambda: len(self._endpoints) > 1,
            on_stall=self._outage.probe,
            moves=place_now is not None,
        )
        self._place_now = place_now
        self._looked_at = time.monotonic()
        self._place: Place = tuple(urls), api_key
        self._endpoints = [self._new_endpoint(url, authorization(api_key)) for url in urls]
        self._left: list[Endpoint] = []
        self._max_retries = max_retries
        self._budget = RetryBudget()
        self._queue = WaitQueue(
            lambda: self._endpoints, self._seconds_left, self._leave, None if place_now is None else self._look
        )

    async def ask(self, message: Message, deadline: SharedDeadline) -> Any:
        """Send a message, with retries, and return its result.

        Args:
            message: the message to send.
            deadline: the deadline that all callers share.

        Raises:
            DeadlineError: no valid answer came in time; the message has the last error.
            UnreachableError: the service has been down or stalled for as long as a call waits.
            RejectedError: the service rejected the request.
            ReplyError: all retries got invalid replies.
            BudgetError: `message.admit` does not allow an attempt.
        """
        self._budget.earn()
        deadline.set_service(self)
        failures: Failures | None = None
        timeout = AttemptTimeout(deadline, time.monotonic())
        self._look()
        self._outage.raise_if_stalled(message.method, deadline)
        while True:
            endpoint = await self._turn(deadline, failures)
            # Only an answer restarts the timeout, not a slot that a failure has freed: else each batch of requests
            # would wait a whole timeout for a service that never answers.
            if timeout.since < self.last_progress:
                timeout = deadline.start_attempt()
            try:
                return await self._attempt(endpoint, message, timeout, failures)
            except (OverloadError, UnreachableError, RejectedError, ReplyError) as error:
                if isinstance(error, RejectedError) and not error.is_misplaced:
                    raise
                failures = failures or Failures()
                failures.note(endpoint, error)
            await self._until_retry(message, failures, deadline)
            self._look()

    async def _attempt(
        self, endpoint: Endpoint, message: Message, timeout: AttemptTimeout, failures: Failures | None
    ) -> Any:
        """Send a message to an endpoint with a reserved slot; return the result, which may be the hedge's."""
        sent = message if failures is None else message.to_replica(failures.replica)
        is_hedged = message.is_hedged or len(self._endpoints) > 1
        hedge = partial(self._hedge, endpoint, message, timeout) if is_hedged else None
        try:
            result = await endpoint.ask(sent, timeout, hedge)
        except RejectedError:
            self.last_progress = time.monotonic()
            raise
        else:
            self.last_progress = time.monotonic()
            if failures is not None:
                self._learn(failures, endpoint)
            return result
        finally:
            self._leave(endpoint)

    def _learn(self, failures: Failures, taker: Endpoint) -> None:
        """Blame the endpoints that rejected a request once another endpoint has accepted it."""
        for endpoint, error in failures.faulty.items():
            if endpoint is not taker and isinstance(error, RejectedError):
                endpoint.rejected_wrongly(error)
        if failures.replica:
            taker.replicas.took(failures.replica)

    def _may_eject(self, endpoint: Endpoint) -> bool:
        """Return whether at least half of all endpoints stay available if this endpoint is ejected."""
        out = sum(not one.limiter.is_available for one in self._endpoints if one is not endpoint)
        return 2 * (out + 1) <= len(self._endpoints)

    async def _until_retry(self, message: Message, failures: Failures, deadline: SharedDeadline) -> None:
        """Wait until a failed request may be retried, which is immediately if another endpoint is available.

        Raises:
            ServiceError: the last error, if it is final.
        """
        if any(one.limiter.is_available for one in self._endpoints if one not in failures.tried):
            return
        failures.tried = NONE_TRIED
        error = failures.error
        if isinstance(error, UnreachableError):
            return  # `Outage` and the limiters control the wait
        if isinstance(error, OverloadError):
            await self._until_accepted(error, failures, deadline)
            return
        failures.rounds += 1
        try:
            if isinstance(error, RejectedError):
                await self._until_loaded(error, message, failures, deadline)
            elif isinstance(error, ReplyError):
                await self._until_healthy(error, message, failures, deadline)
        except (RejectedError, ReplyError):
            if not self._is_one_awaited(failures, deadline):
                raise
            failures.is_over = True

    def _is_one_awaited(self, failures: Failures, deadline: SharedDeadline) -> bool:
        """Return whether an endpoint that is not in `failures.faulty` may still accept the request in time."""
        others = [one for one in self._endpoints if one not in failures.faulty]
        return bool(others) and deadline.remaining() > 0 and self._outage.ends_in(others, deadline) > 0

    async def _until_accepted(self, error: OverloadError, failures: Failures, deadline: SharedDeadline) -> None:
        """Wait until an overloaded service may be tried again; usually the limiters control the wait."""
        if error.retry_after > deadline.remaining():
            why = f"{error}; Retry-After of {error.retry_after:.0f} s is beyond the deadline"
            raise DeadlineError(why) from error
        replicas = failures.endpoint.replicas
        if (
            error.status in STEERED
            and failures.rounds < self._max_retries
            and await failures.endpoint.is_gateway(deadline.remaining())
        ):
            failures.rounds += 1
            failures.replica = replicas.next(failures.replica)
            if replicas.good:
                return
        elif error.status in LIMITING | DOWN:
            failures.replica = ""
            return
        await asyncio.sleep(min(failures.back_off(), max(0.0, deadline.remaining())))

    async def _until_loaded(
        self, error: RejectedError, message: Message, failures: Failures, deadline: SharedDeadline
    ) -> None:
        """Wait before the retry of a request whose key, path or model was rejected; raise `error` if it is final."""
        reply_faults = failures.endpoint.reply_faults
        reply_faults.note()
        if message.is_optional:
            raise error
        if await failures.endpoint.is_gateway(deadline.remaining()):
            await self._until_other_replica(error, failures, deadline)
        elif error.status == NOT_FOUND and failures.rounds == 1 and not reply_faults.is_final:
            await _sleep(LOADING_PAUSE, error, deadline)
        else:
            raise error

    async def _until_other_replica(self, error: ServiceError, failures: Failures, deadline: SharedDeadline) -> None:
        """Select another replica behind a gateway; wait first, unless a replica that accepts requests is known."""
        replicas = failures.endpoint.replicas
        failures.replica = replicas.next(failures.replica)
        if failures.rounds > self._max_retries or replicas.are_faulty:
            raise error
        if not replicas.good:
            await _sleep(retry_pause(failures.rounds), error, deadline)

    async def _until_healthy(
        self, error: ReplyError, message: Message, failures: Failures, deadline: SharedDeadline
    ) -> None:
        """Wait until a request may be retried after an invalid reply; raise `error` if it is final."""
        reply_faults = failures.endpoint.reply_faults
        if message.once:
            raise error
        if await failures.endpoint.is_gateway(deadline.remaining()):
            await self._until_other_replica(error, failures, deadline)
            return
        if failures.rounds > self._max_retries or reply_faults.is_final:
            raise error
        await _sleep(retry_pause(failures.rounds), error, deadline)
        while reply_faults.recovered_at < failures.at:
            if not reply_faults.is_on:
                if not self._budget.spend():
                    raise error
                return
            left = deadline.remaining()
            if reply_faults.is_final or left <= 0:
                raise error
            if reply_faults.is_due and self._budget.spend():
                reply_faults.try_out()
                return
            await reply_faults.wait(left)

    def _hedge(self, stuck: Endpoint, message: Message, timeout: AttemptTimeout) -> asyncio.Task[Any] | None:
        """Send a stuck request again to the least loaded endpoint that takes it; return None if there is none.

        Up to `PAST_THE_LIMIT` hedges may exceed an endpoint's limit, because stuck requests may hold all slots. An
        endpoint whose pause is over takes one, as its trial: there may be no other request that would try it.
        """
        others = [one for one in self._endpoints if one is not stuck and (one.limiter.is_available or one.is_due)]
        reaches_others = len(self._endpoints) == 1 or stuck.is_known_gateway
        default = stuck if message.is_hedged and reaches_others and stuck.limiter.is_available else None
        endpoint = min(others, key=lambda one: one.in_flight - one.limiter.limit, default=default)
        if (
            endpoint is None
            or endpoint.in_flight >= endpoint.limiter.limit + PAST_THE_LIMIT
            or not self._budget.spend(HEDGE_PACE)
        ):
            return None
        endpoint.in_flight += 1
        second = asyncio.create_task(self._second(endpoint, message, timeout))
        # Not in the task itself: a task that is cancelled before it starts would never release its slot.
        second.add_done_callback(lambda _: self._leave(endpoint))
        return second

    async def _second(self, endpoint: Endpoint, message: Message, timeout: AttemptTimeout) -> Any:
        replicas = endpoint.replicas
        number = replicas.next("") if endpoint.is_known_gateway else ""
        try:
            result = await endpoint.ask(message.to_replica(number), timeout)
        except RejectedError:
            self.last_progress = time.monotonic()
            raise
        except asyncio.CancelledError:
            replicas.doubt(number)
            raise
        replicas.took(number)
        self.last_progress = time.monotonic()
        self._budget.earn(1.0)
        return result

    def _leave(self, endpoint: Endpoint) -> None:
        endpoint.in_flight -= 1
        if endpoint in self._left and not endpoint.in_flight:
            self._left.remove(endpoint)
            endpoint.close()
        self._queue.assign_slots()

    def follow(self) -> None:
        """Switch to the service's current URLs and key; queued requests move, requests in flight only if they fail.

        Raises:
            SettingsError: the environment sets a proxy for a new URL that is not an HTTP proxy.
        """
        self._looked_at = time.monotonic()
        place = self._place if self._place_now is None else self._place_now()
        urls, api_key = place
        if place == self._place or not urls:
            return
        stay = {endpoint.url: endpoint for endpoint in self._endpoints if api_key == self._place[1]}
        before = self._endpoints
        self._endpoints = [stay.get(url) or self._new_endpoint(url, authorization(api_key)) for url in urls]
        self._place = place
        for endpoint in before:
            if endpoint.in_flight and endpoint not in self._endpoints:
                self._left.append(endpoint)
            elif endpoint not in self._endpoints:
                endpoint.close()
        self.last_progress = self._looked_at  # restart the timeout of all waiters
        self._queue.assign_slots()

    def _look(self) -> None:
        """Check at most every `LOOK` seconds whether the service has moved, and follow it."""
        if self._place_now is not None and time.monotonic() >= self._looked_at + LOOK:
            self.follow()

    async def _turn(self, deadline: SharedDeadline, failures: Failures | None) -> Endpoint:
        """Wait for a slot and return its endpoint, with the slot reserved for the caller."""
        while deadline.remaining() > 0:
            if self._outage.ends_in(self._endpoints, deadline) <= 0:
                await self._raise_if_down(deadline)
            if failures is not None and failures.is_over and not self._is_one_awaited(failures, deadline):
                raise failures.error
            endpoint = None if self._queue else self._queue.take(failures)
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
        raise self._out_of_time(None if failures is None else failures.error)

    def _seconds_left(self, deadline: SharedDeadline, failures: Failures | None) -> float:
        """Return the estimated seconds until a queued call gives up."""
        endpoints: Sequence[Endpoint] = self._endpoints
        if failures is not None and failures.is_over:
            endpoints = [one for one in endpoints if one not in failures.faulty]
        return min(deadline.remaining(), self._outage.ends_in(endpoints, deadline)) if endpoints else 0.0

    async def _raise_if_down(self, deadline: SharedDeadline) -> None:
        """Probe the service; if it is still down, wake all waiters and raise.

        Raises:
            UnreachableError: the service has been down for as long as the call waits.
        """
        await self._outage.wait_for_probe(deadline)
        if self._outage.ends_in(self._endpoints, deadline) > 0:
            return
        cause = self.cause()
        self._queue.wake_all()
        down = time.monotonic() - max(endpoint.failure.down_since for endpoint in self._endpoints)
        raise UnreachableError(f"{cause}; unavailable for {down:.1f} s, failing fast until a health probe succeeds")

    def _out_of_time(self, obstacle: ServiceError | None) -> DeadlineError:
        known = self.cause()
        last = "" if obstacle is None or str(obstacle) in known else f"{obstacle}; "
        return DeadlineError(f"no answer in time; last: {last}{known}")

    def cause(self) -> str:
        """Return the known state of each endpoint, and the number of queued requests."""
        known = [cause for endpoint in (*self._endpoints, *self._left) if (cause := endpoint.cause())]
        if len(self._queue) > 1:
            known.append(f"{len(self._queue)} requests are queued")
        return "; ".join(known) or "no request is in flight"

    def _is_awaited(self) -> bool:
        return bool(self._queue) or any(endpoint.in_flight for endpoint in (*self._endpoints, *self._left))

    def begin(self, requests: int) -> None:
        """Lower each endpoint's limit to `requests`, the capacity that a server reports.

        Successes raise the limit again, because several such servers may be behind an endpoint that is a gateway.
        """
        for endpoint in self._endpoints:
            endpoint.limiter.begin(requests)

    def close(self) -> None:
        """End all attempts and background tasks."""
        self._queue.close()
        self._outage.close()
        for endpoint in (*self._endpoints, *self._left):
            endpoint.close()


async def _sleep(seconds: float, error: ServiceError, deadline: SharedDeadline) -> None:
    """Wait before a retry; raise `error` if the deadline comes first."""
    left = deadline.remaining()
    await asyncio.sleep(max(0.0, min(seconds, left)))
    if left <= seconds:
        raise error
