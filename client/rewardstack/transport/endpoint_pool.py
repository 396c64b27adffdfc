"""A service behind one or several equivalent URLs: whose turn it is, where to, and again when it did not work.

Overload and lost connections are waited out until the deadline, under the limiters' control: they are never a score.
Other errors of the server are tried again at most `max_retries` times, out of a budget. No other 4xx is tried again.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import Coroutine, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple

import aiohttp

from rewardstack.core import deadline as deadlines
from rewardstack.core.deadline import Patience, SharedDeadline
from rewardstack.errors import DeadlineError, OverloadError, RejectedError, ReplyError, ServiceError, UnreachableError
from rewardstack.transport.attempt import Attempt
from rewardstack.transport.budget import RetryBudget
from rewardstack.transport.endpoint import Endpoint
from rewardstack.transport.http import exchange
from rewardstack.transport.pace import Pace

NONE: Mapping[str, str] = MappingProxyType({})


class _Message(NamedTuple):
    """What is sent, to whichever endpoint."""

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = NONE
    hedged: bool = False


class EndpointPool:
    """Equivalent endpoints under one key.

    Args:
        urls: their base URLs.
        api_key: sent to each of them as a bearer token; empty for none.
        session: that carries the requests.
        ceiling: most requests in flight to one of them.
        max_retries: further attempts for a request that failed otherwise than by overload or lost connection.
    """

    def __init__(
        self, urls: Sequence[str], api_key: str, session: aiohttp.ClientSession, ceiling: int, max_retries: int
    ) -> None:
        self.last_progress = 0.0
        self._endpoints = [Endpoint(url, ceiling, session) for url in urls]
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._session = session
        self._max_retries = max_retries
        self._budget = RetryBudget()
        self._pace = Pace()
        self._queue: deque[asyncio.Future[Endpoint]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    def get(self, path: str, deadline: SharedDeadline, headers: Mapping[str, str] = NONE) -> Coroutine[Any, Any, bytes]:
        """The body that a GET of `path` brings, to be awaited; arguments and errors as those of `post`."""
        return self._ask(_Message("GET", path, headers=headers), deadline)

    def post(
        self,
        path: str,
        body: bytes,
        deadline: SharedDeadline,
        probe: bytes | None = None,
        headers: Mapping[str, str] = NONE,
        *,
        hedged: bool = False,
    ) -> Coroutine[Any, Any, bytes]:
        """The body that a POST to `path` brings, to be awaited.

        Args:
            path: begins with a slash.
            body: JSON.
            deadline: of all who wait for the reply.
            probe: a body that costs the service nothing; posted first to an endpoint that took nothing of late, so that
                an outage is not met with work.
            headers: beside the service's own.
            hedged: whether it is sent once more when it is stuck (`rewardstack.transport.pace`).

        Raises:
            DeadlineError: no usable answer came in time; names the last obstacle.
            RejectedError: the service refused for good.
            ReplyError: it answered with an error, more often than retries allow.
        """
        return self._ask(_Message("POST", path, body, headers, hedged), deadline, probe)

    async def _ask(self, message: _Message, deadline: SharedDeadline, probe: bytes | None = None) -> bytes:
        self._budget.earn()
        obstacle: ServiceError | None = None
        retries, since = 0, -1.0
        while True:
            endpoint = await self._turn(deadline, obstacle)
            if since < self.last_progress or since < 0:
                since = time.monotonic()
                deadline.progress()
            patience = Patience(deadline, since)
            try:
                if probe is not None and endpoint.limiter.doubtful:
                    await self._probe(endpoint, message._replace(body=probe, hedged=False), patience)
                reply = await self._send(endpoint, message, patience)
                self._answered(endpoint)
                return reply
            except RejectedError:
                self._answered(endpoint)
                raise
            except OverloadError as error:
                obstacle = error
            except UnreachableError as error:
                obstacle = error
                endpoint.unreachable(error)
            except ReplyError as error:
                obstacle = error
                retries += 1
                if retries > self._max_retries or not self._budget.spend():
                    raise
            finally:
                endpoint.in_flight -= 1
                self._hand_out()

    async def _probe(self, endpoint: Endpoint, message: _Message, patience: Patience) -> None:
        try:
            await self._send(endpoint, message, patience)
        except (RejectedError, ReplyError):
            return  # it is there; what it thinks of real work the next request shows

    async def _send(self, endpoint: Endpoint, message: _Message, patience: Patience) -> bytes:
        sent_at, answered = time.monotonic(), True
        if message.hedged:
            attempt = Attempt(endpoint.url, patience, self._pace, partial(self._send_once_more, message, patience))
        else:
            attempt = Attempt(endpoint.url, patience)
        endpoint.begin(attempt)
        try:
            reply = await self._exchange(endpoint, message, patience)
        except asyncio.CancelledError:
            answered = False
            if (other := attempt.outcome()) is None:
                raise
            return other
        except OverloadError as error:
            endpoint.limiter.refused(sent_at, endpoint.in_flight - 1, error.retry_after)
            raise
        except UnreachableError:
            endpoint.limiter.unreachable()
            raise
        finally:
            attempt.stop()
            endpoint.end(attempt, answered=answered)
        self._pace.answered(sent_at)
        return reply

    def _exchange(self, endpoint: Endpoint, message: _Message, patience: Patience) -> Coroutine[Any, Any, bytes]:
        left = str(max(1, int(patience.left() * 1000)))
        headers = {**self._headers, **message.headers, deadlines.HEADER: left}
        return exchange(self._session, message.method, endpoint.url + message.path, message.body, headers)

    def _send_once_more(self, message: _Message, patience: Patience) -> asyncio.Task[bytes] | None:
        """Another attempt beside one that is stuck, where there is a place for it."""
        endpoint = self._free()
        if endpoint is None or self._queue:
            return None
        endpoint.in_flight += 1
        return asyncio.create_task(self._second(endpoint, message._replace(hedged=False), patience))

    async def _second(self, endpoint: Endpoint, message: _Message, patience: Patience) -> bytes:
        try:
            reply = await self._send(endpoint, message, patience)
            self._answered(endpoint)
            return reply
        finally:
            endpoint.in_flight -= 1
            self._hand_out()

    def _answered(self, endpoint: Endpoint) -> None:
        self.last_progress = time.monotonic()
        endpoint.found()

    async def _turn(self, deadline: SharedDeadline, obstacle: ServiceError | None) -> Endpoint:
        """Waits until an endpoint takes one more; the place in it is the caller's."""
        if deadline.remaining() <= 0:
            raise self._out_of_time(obstacle)
        endpoint = None if self._queue else self._free()
        if endpoint is not None:
            endpoint.in_flight += 1
            return endpoint
        turn: asyncio.Future[Endpoint] = asyncio.get_running_loop().create_future()
        if obstacle is None:
            self._queue.append(turn)
        else:
            self._queue.appendleft(turn)
        self._hand_out()
        try:
            with deadline.queued(self):
                while not turn.done() and (left := deadline.remaining()) > 0:
                    await asyncio.wait((turn,), timeout=left)
            if turn.done():
                return turn.result()
            raise self._out_of_time(obstacle)
        except BaseException:
            self._give_back(turn)
            raise

    def _out_of_time(self, obstacle: ServiceError | None) -> DeadlineError:
        last = obstacle or next((one.trouble for one in self._endpoints if one.trouble is not None), None)
        return DeadlineError(f"no answer in time; last: {last}" if last else "no answer in time")

    def _give_back(self, turn: asyncio.Future[Endpoint]) -> None:
        if turn.done() and not turn.cancelled():
            turn.result().in_flight -= 1
            self._hand_out()
        else:
            turn.cancel()

    def _free(self) -> Endpoint | None:
        free = [endpoint for endpoint in self._endpoints if endpoint.limiter.admits(endpoint.in_flight)]
        return min(free, key=lambda endpoint: (endpoint.in_flight, random.random()), default=None)

    def _hand_out(self) -> None:
        """Gives free places to those who wait, and comes back when a paused endpoint opens."""
        while self._queue:
            if self._queue[0].done():
                self._queue.popleft()
                continue
            endpoint = self._free()
            if endpoint is None:
                self._come_back()
                return
            endpoint.in_flight += 1
            self._queue.popleft().set_result(endpoint)

    def _come_back(self) -> None:
        now = time.monotonic()
        pauses = [endpoint.limiter.opens_at - now for endpoint in self._endpoints if endpoint.limiter.opens_at > now]
        if not pauses:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(min(pauses) + 0.001, self._hand_out)

    def begin(self, requests: int) -> None:
        """Lets no more than `requests` in flight to each endpoint for now: its server says that it holds no more.

        Behind a gateway there may be several such servers, which is found out as after a refusal, by and by.
        """
        for endpoint in self._endpoints:
            endpoint.limiter.begin(requests)

    def close(self) -> None:
        """Ends every attempt and every watch."""
        if self._timer is not None:
            self._timer.cancel()
        for endpoint in self._endpoints:
            endpoint.close()
