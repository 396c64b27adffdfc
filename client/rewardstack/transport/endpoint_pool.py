"""A service behind one or several equivalent URLs: where a request goes, when, and again when it did not work.

Overload and lost connections are waited out, under the limiters' control: they are never a score. Overload is until the
deadline, a service that is away as long as `rewardstack.transport.outage` has it. Other errors of the server are tried
again at most `max_retries` times, out of a budget. No other 4xx is tried again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

import aiohttp

from rewardstack.core.deadline import Patience, SharedDeadline
from rewardstack.endpoints import LOOK
from rewardstack.errors import (
    DeadlineError,
    OverloadError,
    RejectedError,
    ReplyError,
    ServiceError,
    UnreachableError,
)
from rewardstack.transport.attempt import Pace
from rewardstack.transport.budget import RetryBudget
from rewardstack.transport.endpoint import NONE, Admit, Endpoint, Message
from rewardstack.transport.http import authorization
from rewardstack.transport.outage import Outage
from rewardstack.transport.turns import Turns

Place = tuple[tuple[str, ...], str]
"""Base URLs of equivalent endpoints, and the key that is sent to each."""


class EndpointPool:
    """Equivalent endpoints under one key.

    Args:
        urls: their base URLs.
        api_key: sent to each of them as a bearer token; empty for none.
        session: that carries the requests.
        ceiling: most requests in flight to one of them.
        max_retries: further attempts for a request that failed otherwise than by overload or lost connection.
        place_now: where the service is now, for one that may move; None for one that stays.
    """

    def __init__(
        self,
        urls: Sequence[str],
        api_key: str,
        session: aiohttp.ClientSession,
        ceiling: int,
        max_retries: int,
        place_now: Callable[[], Place] | None = None,
    ) -> None:
        self.last_progress = 0.0
        self._new_endpoint = partial(
            Endpoint,
            ceiling=ceiling,
            session=session,
            pace=Pace(),
            is_awaited=self._is_awaited,
            moves=place_now is not None,
        )
        self._place_now = place_now
        self._looked_at = time.monotonic()
        self._place: Place = tuple(urls), api_key
        self._endpoints = [self._new_endpoint(url, authorization(api_key)) for url in urls]
        self._left: list[Endpoint] = []
        self._max_retries = max_retries
        self._budget = RetryBudget()
        self._outage = Outage(moves=place_now is not None)
        self._turns = Turns(lambda: self._endpoints, None if place_now is None else self._look)

    def get(self, path: str, deadline: SharedDeadline, headers: Mapping[str, str] = NONE) -> Coroutine[Any, Any, bytes]:
        """The body that a GET of `path` brings, to be awaited; arguments and errors as those of `post`."""
        return self._ask(Message("GET", path, headers=headers), deadline)

    def post(
        self,
        path: str,
        body: bytes,
        deadline: SharedDeadline,
        probe: bytes | None = None,
        headers: Mapping[str, str] = NONE,
        *,
        hedged: bool = False,
        admit: Admit | None = None,
    ) -> Coroutine[Any, Any, bytes]:
        """The body that a POST to `path` brings, to be awaited.

        Args:
            path: begins with a slash.
            body: JSON.
            deadline: of all who wait for the reply.
            probe: a body that costs the service nothing; posted first to an endpoint that took nothing of late, so that
                an outage is not met with work.
            headers: beside the service's own.
            hedged: whether it is sent once more when it is stuck (`rewardstack.transport.attempt`).
            admit: says before each attempt whether it may be made, probes apart; None where all may.

        Raises:
            DeadlineError: no usable answer came in time; names the last obstacle.
            UnreachableError: the service is away, and has been for as long as a call waits for it.
            RejectedError: the service refused for good.
            ReplyError: it answered with an error, more often than retries allow.
            BudgetError: an attempt was not admitted.
        """
        return self._ask(Message("POST", path, body, headers, admit), deadline, probe, hedged=hedged)

    async def _ask(
        self, message: Message, deadline: SharedDeadline, probe: bytes | None = None, *, hedged: bool = False
    ) -> bytes:
        self._budget.earn()
        deadline.waits_for(self)
        obstacle: ServiceError | None = None
        patience = Patience(deadline, time.monotonic())
        retries = 0
        while True:
            self._look()
            endpoint = await self._turn(deadline, obstacle)
            # A place that only others' failures have made free is no progress: a service that never answers would be
            # waited for by one batch of requests after the other.
            if patience.since < self.last_progress:
                patience = deadline.sent()
            try:
                once_more = partial(self._send_once_more, message, patience) if hedged else None
                reply = await endpoint.ask(message, patience, probe, once_more)
                self.last_progress = time.monotonic()
                return reply
            except RejectedError:
                self.last_progress = time.monotonic()
                raise
            except (OverloadError, UnreachableError) as error:
                obstacle = error
                endpoint.incident.note(error)
            except ReplyError as error:
                obstacle = error
                retries += 1
                if retries > self._max_retries or not self._budget.spend():
                    raise
            finally:
                self._leave(endpoint)

    def _send_once_more(self, message: Message, patience: Patience) -> asyncio.Task[bytes] | None:
        """Another attempt beside one that is stuck, where there is a place for it."""
        endpoint = None if self._turns else self._turns.take()
        if endpoint is None:
            return None
        return asyncio.create_task(self._second(endpoint, message, patience))

    async def _second(self, endpoint: Endpoint, message: Message, patience: Patience) -> bytes:
        try:
            reply = await endpoint.ask(message, patience)
            self.last_progress = time.monotonic()
            return reply
        except RejectedError:
            self.last_progress = time.monotonic()
            raise
        finally:
            self._leave(endpoint)

    def _leave(self, endpoint: Endpoint) -> None:
        endpoint.in_flight -= 1
        if endpoint in self._left and not endpoint.in_flight:
            self._left.remove(endpoint)
            endpoint.close()
        self._turns.hand_out()

    def follow(self) -> None:
        """Goes where the service is now. What waits comes along; what is on its way stays, and follows if that fails.

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
        self.last_progress = self._looked_at  # who waited for the old place has all its patience for the new one
        self._turns.hand_out()

    def _look(self) -> None:
        """Follows a service that may move; looks for it once in `LOOK` seconds."""
        if self._place_now is not None and time.monotonic() >= self._looked_at + LOOK:
            self.follow()

    async def _turn(self, deadline: SharedDeadline, obstacle: ServiceError | None) -> Endpoint:
        """Waits until an endpoint takes one more; the place in it is the caller's."""
        while deadline.remaining() > 0:
            if self._outage.ends_in(self._endpoints, deadline) <= 0:
                await self._raise_if_away(deadline)
            endpoint = None if self._turns else self._turns.take()
            if endpoint is not None:
                if obstacle is None:
                    deadline.sent()
                return endpoint
            endpoint = await self._queued(deadline, first=obstacle is not None)
            if endpoint is not None:
                return endpoint
        raise self._out_of_time(obstacle)

    async def _queued(self, deadline: SharedDeadline, *, first: bool) -> Endpoint | None:
        """Waits for a turn; None where there is none yet, and one is to look whether to wait any longer."""
        with self._turns.queued(first=first) as turn:
            try:
                with deadline.queued(self):
                    while not turn.done() and (left := self._waits_for(deadline)) > 0:
                        await asyncio.wait((turn,), timeout=left)
                return turn.result() if turn.done() else None
            except BaseException:
                if turn.done() and (endpoint := turn.result()) is not None:
                    self._leave(endpoint)
                raise

    def _waits_for(self, deadline: SharedDeadline) -> float:
        """Seconds until a call that waits for its turn gives up, as far as one can say now."""
        return min(deadline.remaining(), self._outage.ends_in(self._endpoints, deadline))

    async def _raise_if_away(self, deadline: SharedDeadline) -> None:
        """Returns where the service is back; else has all who wait look whether they still do.

        Raises:
            UnreachableError: it is away, and has been for as long as the call waits for it.
        """
        await self._outage.probe(self._endpoints, deadline)
        if self._outage.ends_in(self._endpoints, deadline) > 0:
            return
        cause = self.cause()
        self._turns.have_all_look()
        away = time.monotonic() - max(endpoint.incident.away_since for endpoint in self._endpoints)
        raise UnreachableError(f"{cause}; away for {away:.1f} s, so nothing waits for it until it is back")

    def _out_of_time(self, obstacle: ServiceError | None) -> DeadlineError:
        known = self.cause()
        last = "" if obstacle is None or str(obstacle) in known else f"{obstacle}; "
        return DeadlineError(f"no answer in time; last: {last}{known}")

    def cause(self) -> str:
        """What is known of each endpoint, and how many wait for their turn."""
        known = [cause for endpoint in (*self._endpoints, *self._left) if (cause := endpoint.cause())]
        if len(self._turns) > 1:
            known.append(f"{len(self._turns)} requests wait for their turn")
        return "; ".join(known) or "nothing is on its way to it"

    def _is_awaited(self) -> bool:
        return bool(self._turns) or any(endpoint.in_flight for endpoint in (*self._endpoints, *self._left))

    def begin(self, requests: int) -> None:
        """Lets no more than `requests` in flight to each endpoint for now: its server says that it holds no more.

        Behind a gateway there may be several such servers, which is found out as after a refusal, by and by.
        """
        for endpoint in self._endpoints:
            endpoint.limiter.begin(requests)

    def close(self) -> None:
        """Ends every attempt and every watch."""
        self._turns.close()
        self._outage.close()
        for endpoint in (*self._endpoints, *self._left):
            endpoint.close()
