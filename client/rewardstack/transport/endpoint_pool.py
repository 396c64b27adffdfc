"""A service behind one or several equivalent URLs: where a request goes, when, and again when it did not work.

This module alone decides about endpoints, limits and retries. Above it something is sent again in three cases: a
judge is asked once more for an unreadable verdict, a batch is split to isolate the sample at fault, and what failed is
sent again for a caller who joined with more time (`core.batching`). What a reply means is `reply`'s table, what it does
to its endpoint is `endpoint`'s affair, and this is what becomes of the request:

1. It goes to the endpoint with the fewest in flight, or waits in line until one has room (`limiter`, AIMD).
2. After a failure it goes to another endpoint at once, as long as one is left that is neither paused nor ejected.
   Failover spends no budget.
3. With none left, overload is waited out until the deadline, under the limiters' control; `Retry-After` beyond the
   deadline ends the wait.
4. So is an outage, but it costs one timeout in all: all calls share it, it counts from the outage's start, and later
   calls fail at once until a probe in the background succeeds (`outage`).
5. After an ill reply with none left it is tried `max_retries` times with growing pauses, out of a budget (a tenth of
   all requests, and ten). While an endpoint is ill for everybody, one request at a time finds out whether that is over;
   then all go. Behind our gateway the next tries ask for another of its servers by number, and spend no budget.
6. A rejection is final; if it is about key, path or model, once all endpoints have said so (404 once more).
7. Endpoints are ejected as by Envoy's outlier detection: after three failures in a row (of 429, 503 and 529 ten), for a
   growing interval, never more than half of them; then a probe and a single request show whether one is back.
8. A request that is stuck is hedged out of the budget; a hedge that was answered first gives its token back.
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
from rewardstack.transport.endpoint import Endpoint, Message, Pace, ill_pause
from rewardstack.transport.http import authorization
from rewardstack.transport.limiter import BACKOFF_FIRST, BACKOFF_MOST, backoff
from rewardstack.transport.outage import Outage
from rewardstack.transport.reply import DOWN, LIMITING, STEERED

RETRY_SHARE = 0.1
"""Of a retry, which each request earns."""
RETRY_RESERVE = 10.0
"""Retries that are there from the start."""
PAST_THE_LIMIT = 3
"""Hedges that an endpoint gets beyond its limit: they show which server hangs."""
LOADING_PAUSE = 2.5
"""Seconds until 404 is tried once more: a model may still load."""
NOT_FOUND = 404

Place = tuple[tuple[str, ...], str]
"""Base URLs of equivalent endpoints, and the key that is sent to each."""
Turn = asyncio.Future["Endpoint | None"]
"""Its result is an endpoint, with a place that is now the waiter's; None where one is to look whether to wait on."""
Tried = frozenset[Endpoint]
NOBODY: Tried = frozenset()


class RetryBudget:
    """Retries may add a tenth to the load, no more: a service that answers with errors is not buried under repeats.

    Each request earns a tenth of a retry, up to a hundred; a few are there from the start.
    """

    def __init__(self) -> None:
        self._tokens = RETRY_RESERVE

    def earn(self, retries: float = RETRY_SHARE) -> None:
        """Note that a request was made, or that a retry was not needless."""
        self._tokens = min(self._tokens + retries, RETRY_RESERVE * 10)

    def spend(self) -> bool:
        """Return whether one more retry is affordable; take its price if so."""
        if self._tokens < 1.0:
            return False
        self._tokens -= 1.0
        return True


class Failures:
    """What became of one request so far.

    Attributes:
        error: the last one.
        endpoint: where that was.
        at: when that was, on `time.monotonic()`.
        tried: endpoints that failed it since the last pause; it goes there only if no other is available.
        faulty: endpoints whose reply was ill or a rejection by key, path or model, with the last such error.
        is_over: whether it goes to none of the faulty ones any more, and waits for the others alone.
        rounds: how often all endpoints were faulty.
        pauses: that it made itself after refusals.
        replica: number of the server behind a gateway that it goes to; empty for any.
    """

    __slots__ = ("at", "endpoint", "error", "faulty", "is_over", "pauses", "replica", "rounds", "tried")

    def __init__(self) -> None:
        self.tried: Tried = NOBODY
        self.faulty: dict[Endpoint, ReplyError | RejectedError] = {}
        self.is_over = False
        self.rounds = self.pauses = 0
        self.replica = ""

    def note(self, endpoint: Endpoint, error: ServiceError) -> None:
        """Note a failure."""
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
    """Those who wait for a place at an endpoint, in order; its length is how many.

    Args:
        endpoints: says which there are now.
        seconds_left: for which a call of this deadline and with these failures still waits.
        leave: gives back a place that a cancelled call does not need.
        look: finds out whether the service has moved, while somebody waits; None for one that stays.
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
        """Return an endpoint with a place that is the caller's now, the one that has least to do; None if all are full.

        Args:
            failures: of the caller's request, which say where it may go; None for a new one.
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
        """Wait for a turn, and return its endpoint; None where one is to look whether to wait any longer.

        Args:
            deadline: of all who wait for the request.
            failures: of a request that is sent again, which comes before all others; None for a new one.
        """
        turn: Turn = asyncio.get_running_loop().create_future()
        if failures is None:
            self._waiting[turn] = deadline, None
        else:
            self._retries[turn] = deadline, failures
        if self._retries or len(self._waiting) == 1:
            self.hand_out()
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

    def hand_out(self) -> None:
        """Give free places to those who wait; come back when a paused endpoint opens, or to look for the service."""
        if self._retries:
            self._hand_out_to_retries()
        while self._waiting and self._give(next(iter(self._waiting)), None):
            pass
        if self._waiting or self._retries:
            self._come_back()

    def _hand_out_to_retries(self) -> None:
        in_vain: set[tuple[Tried, bool]] = set()
        for turn, (_, failures) in list(self._retries.items()):
            alike = failures.tried, failures.is_over
            if (NOBODY, False) in in_vain:
                break
            if alike not in in_vain and not self._give(turn, failures):
                in_vain.add(alike)

    def _give(self, turn: Turn, failures: Failures | None) -> bool:
        """Return whether a turn needs nothing more: it has a place now, or was cancelled."""
        if not turn.done():
            endpoint = self.take(failures)
            if endpoint is None:
                return False
            turn.set_result(endpoint)
        self._remove(turn)
        return True

    def have_all_look(self) -> None:
        """End all turns without a place, so that each who waits looks whether to wait any longer."""
        for turn in (*self._retries, *self._waiting):
            self._end(turn)

    def _end(self, turn: Turn) -> None:
        self._remove(turn)
        if not turn.done():
            turn.set_result(None)

    def _come_back(self) -> None:
        if self._look is not None:
            self._ring_in(LOOK)
        for endpoint in self._endpoints():
            if endpoint.limiter.opens_at and (pause := endpoint.limiter.opens_at - time.monotonic()) > 0:
                self._ring_in(pause)

    def _ring_in(self, seconds: float) -> None:
        """Look after all who wait then, if not before: one timer for all costs less than one each."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            if self._timer.when() <= loop.time() + seconds:
                return
            self._timer.cancel()
        self._timer = loop.call_later(max(0.0, seconds) + 0.001, self._ring)

    def _watch(self, seconds: float) -> None:
        self._first_gives_up_at = min(self._first_gives_up_at, time.monotonic() + seconds)
        self._ring_in(seconds)

    def _ring(self) -> None:
        self._timer = None
        with suppress(SettingsError):  # the next call says it
            if self._look is not None:
                self._look()
        self.hand_out()
        if time.monotonic() < self._first_gives_up_at:
            self._ring_in(self._first_gives_up_at - time.monotonic())
            return
        self._first_gives_up_at = math.inf
        for turn, (deadline, failures) in (*self._retries.items(), *self._waiting.items()):
            left = self._seconds_left(deadline, failures)
            if left <= 0:
                self._end(turn)
            else:
                self._watch(left)

    def close(self) -> None:
        """Come back no more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


class EndpointPool:
    """Equivalent endpoints under one key.

    Args:
        urls: their base URLs.
        api_key: sent to each of them as a bearer token; empty for none.
        session: that carries the requests.
        ceiling: most requests in flight to one of them.
        max_retries: further attempts for a request whose replies are ill.
        place_now: where the service is now, for one that may move; None for one that stays.
        refused_timeout: seconds for which refused connections are waited for at most; one that may move is waited for
            as long as any.
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
            pace=Pace(),
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
        """Return what a message brings.

        Args:
            message: that is sent, and sent again where that may help.
            deadline: of all who wait for the reply.

        Raises:
            DeadlineError: no usable answer came in time; names the last obstacle.
            UnreachableError: the service is down, and has been for as long as a call waits for it.
            RejectedError: the service refused for good.
            ReplyError: its replies are ill, more often than retries allow.
            BudgetError: an attempt was not admitted.
        """
        self._budget.earn()
        deadline.waits_for(self)
        failures: Failures | None = None
        patience = AttemptTimeout(deadline, time.monotonic())
        self._look()
        self._outage.raise_if_stalled(message.method, deadline)
        while True:
            endpoint = await self._turn(deadline, failures)
            # A place that only others' failures have made free is no progress: a service that never answers would be
            # waited for by one batch of requests after the other.
            if patience.since < self.last_progress:
                patience = deadline.sent()
            try:
                return await self._attempt(endpoint, message, patience, failures)
            except (OverloadError, UnreachableError, RejectedError, ReplyError) as error:
                if isinstance(error, RejectedError) and not error.is_misplaced:
                    raise
                failures = failures or Failures()
                failures.note(endpoint, error)
            await self._until_again(message, failures, deadline)
            self._look()

    async def _attempt(
        self, endpoint: Endpoint, message: Message, patience: AttemptTimeout, failures: Failures | None
    ) -> Any:
        """Return what an endpoint makes of a message that has a place there, or its hedge; raises as `ask` does."""
        sent = message if failures is None else message.to_replica(failures.replica)
        is_hedged = message.is_hedged or len(self._endpoints) > 1
        hedge = partial(self._hedge, endpoint, message, patience) if is_hedged else None
        try:
            result = await endpoint.ask(sent, patience, hedge)
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
        """Count the rejections of a request against the endpoints that they came from, once another has taken it."""
        for endpoint, error in failures.faulty.items():
            if endpoint is not taker and isinstance(error, RejectedError):
                endpoint.was_wrong(error)
        if failures.replica:
            taker.replicas.took(failures.replica)

    def _may_eject(self, endpoint: Endpoint) -> bool:
        """Return whether an endpoint may be ejected: with it no more than half of them are."""
        out = sum(not one.limiter.is_available for one in self._endpoints if one is not endpoint)
        return 2 * (out + 1) <= len(self._endpoints)

    async def _until_again(self, message: Message, failures: Failures, deadline: SharedDeadline) -> None:
        """Return when a request that failed is to be sent again: at once, if another endpoint is left.

        Raises:
            ServiceError: its last one, where it is not.
        """
        if any(one.limiter.is_available for one in self._endpoints if one not in failures.tried):
            return
        failures.tried = NOBODY
        error = failures.error
        if isinstance(error, UnreachableError):
            return  # the outage and the limiters say when
        if isinstance(error, OverloadError):
            await self._until_taken(error, failures, deadline)
            return
        failures.rounds += 1
        try:
            if isinstance(error, RejectedError):
                await self._until_loaded(error, message, failures, deadline)
            elif isinstance(error, ReplyError):
                await self._until_well(error, message, failures, deadline)
        except (RejectedError, ReplyError):
            if not self._is_one_awaited(failures, deadline):
                raise
            failures.is_over = True

    def _is_one_awaited(self, failures: Failures, deadline: SharedDeadline) -> bool:
        """Return whether another endpoint than the faulty ones may still take the request within the deadline."""
        others = [one for one in self._endpoints if one not in failures.faulty]
        return bool(others) and deadline.remaining() > 0 and self._outage.ends_in(others, deadline) > 0

    async def _until_taken(self, error: OverloadError, failures: Failures, deadline: SharedDeadline) -> None:
        """Return when a service that refuses for now may be asked again; as a rule the limiters say when."""
        if error.retry_after > deadline.remaining():
            why = f"{error}; it asks to wait {error.retry_after:.0f} s, which is beyond the deadline"
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
        """Return when a key, path or model may be tried again: behind a gateway, or where a server may still load."""
        illness = failures.endpoint.illness
        illness.note()
        if message.is_optional:
            raise error
        if await failures.endpoint.is_gateway(deadline.remaining()):
            await self._until_elsewhere(error, failures, deadline)
        elif error.status == NOT_FOUND and failures.rounds == 1 and not illness.is_chronic:
            await _sleep(LOADING_PAUSE, error, deadline)
        else:
            raise error

    async def _until_elsewhere(self, error: ServiceError, failures: Failures, deadline: SharedDeadline) -> None:
        """Return when a gateway may be asked for another of its servers: at once, if one is known to be well."""
        replicas = failures.endpoint.replicas
        failures.replica = replicas.next(failures.replica)
        if failures.rounds > self._max_retries or replicas.are_ill:
            raise error
        if not replicas.good:
            await _sleep(ill_pause(failures.rounds), error, deadline)

    async def _until_well(
        self, error: ReplyError, message: Message, failures: Failures, deadline: SharedDeadline
    ) -> None:
        """Return when a request whose reply was ill may be sent again."""
        illness = failures.endpoint.illness
        if message.once:
            raise error
        if await failures.endpoint.is_gateway(deadline.remaining()):
            await self._until_elsewhere(error, failures, deadline)
            return
        if failures.rounds > self._max_retries or illness.is_chronic:
            raise error
        await _sleep(ill_pause(failures.rounds), error, deadline)
        while illness.recovered_at < failures.at:
            if not illness.is_on:
                if not self._budget.spend():
                    raise error
                return
            left = deadline.remaining()
            if illness.is_chronic or left <= 0:
                raise error
            if illness.is_due and self._budget.spend():
                illness.try_out()
                return
            await illness.wait(left)

    def _hedge(self, stuck: Endpoint, message: Message, patience: AttemptTimeout) -> asyncio.Task[Any] | None:
        """Send a request once more that is stuck at an endpoint, where there is a place for it.

        A few go past those who wait for a place: what is stuck may hold all of them.
        """
        others = [one for one in self._endpoints if one is not stuck and one.limiter.is_available]
        default = stuck if message.is_hedged and stuck.limiter.is_available else None
        endpoint = min(others, key=lambda one: one.in_flight - one.limiter.limit, default=default)
        if (
            endpoint is None
            or endpoint.in_flight >= endpoint.limiter.limit + PAST_THE_LIMIT
            or not self._budget.spend()
        ):
            return None
        endpoint.in_flight += 1
        second = asyncio.create_task(self._second(endpoint, message, patience))
        # Not in the task itself: one that is cancelled before it begins would keep its place for ever.
        second.add_done_callback(lambda _: self._leave(endpoint))
        return second

    async def _second(self, endpoint: Endpoint, message: Message, patience: AttemptTimeout) -> Any:
        replicas = endpoint.replicas
        number = replicas.next("") if endpoint.is_known_gateway else ""
        try:
            result = await endpoint.ask(message.to_replica(number), patience)
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
        self._queue.hand_out()

    def follow(self) -> None:
        """Go where the service is now. What waits comes along; what is in flight stays, and follows if that fails.

        Raises:
            SettingsError: the environment names a proxy for the new place that is none for HTTP.
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
        self.last_progress = self._looked_at  # who waited for the old place has a whole timeout for the new one
        self._queue.hand_out()

    def _look(self) -> None:
        """Follow a service that may move; look for it once in `LOOK` seconds."""
        if self._place_now is not None and time.monotonic() >= self._looked_at + LOOK:
            self.follow()

    async def _turn(self, deadline: SharedDeadline, failures: Failures | None) -> Endpoint:
        """Wait until an endpoint takes one more; the place in it is the caller's."""
        while deadline.remaining() > 0:
            if self._outage.ends_in(self._endpoints, deadline) <= 0:
                await self._raise_if_down(deadline)
            if failures is not None and failures.is_over and not self._is_one_awaited(failures, deadline):
                raise failures.error
            endpoint = None if self._queue else self._queue.take(failures)
            if endpoint is not None:
                if failures is None:
                    deadline.progress()
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
        """Return the seconds until a call that waits for its turn gives up, as far as one can say now."""
        endpoints: Sequence[Endpoint] = self._endpoints
        if failures is not None and failures.is_over:
            endpoints = [one for one in endpoints if one not in failures.faulty]
        return min(deadline.remaining(), self._outage.ends_in(endpoints, deadline)) if endpoints else 0.0

    async def _raise_if_down(self, deadline: SharedDeadline) -> None:
        """Return where the service is back; else have all who wait look whether they still do.

        Raises:
            UnreachableError: it is down, and has been for as long as the call waits for it.
        """
        await self._outage.wait_for_probe(deadline)
        if self._outage.ends_in(self._endpoints, deadline) > 0:
            return
        cause = self.cause()
        self._queue.have_all_look()
        down = time.monotonic() - max(endpoint.incident.down_since for endpoint in self._endpoints)
        raise UnreachableError(f"{cause}; unavailable for {down:.1f} s, failing fast until a health probe succeeds")

    def _out_of_time(self, obstacle: ServiceError | None) -> DeadlineError:
        known = self.cause()
        last = "" if obstacle is None or str(obstacle) in known else f"{obstacle}; "
        return DeadlineError(f"no answer in time; last: {last}{known}")

    def cause(self) -> str:
        """Return what is known of each endpoint, and how many wait for their turn."""
        known = [cause for endpoint in (*self._endpoints, *self._left) if (cause := endpoint.cause())]
        if len(self._queue) > 1:
            known.append(f"{len(self._queue)} requests wait for their turn")
        return "; ".join(known) or "nothing is on its way to it"

    def _is_awaited(self) -> bool:
        return bool(self._queue) or any(endpoint.in_flight for endpoint in (*self._endpoints, *self._left))

    def begin(self, requests: int) -> None:
        """Let no more than `requests` in flight to each endpoint for now: its server says that it holds no more.

        Behind a gateway there may be several such servers, which is found out as after a refusal, by and by.
        """
        for endpoint in self._endpoints:
            endpoint.limiter.begin(requests)

    def close(self) -> None:
        """End every attempt and every watch."""
        self._queue.close()
        self._outage.close()
        for endpoint in (*self._endpoints, *self._left):
            endpoint.close()


async def _sleep(seconds: float, error: ServiceError, deadline: SharedDeadline) -> None:
    """Wait before a request is sent again; raise its error where the deadline comes first."""
    left = deadline.remaining()
    await asyncio.sleep(max(0.0, min(seconds, left)))
    if left <= seconds:
        raise error
