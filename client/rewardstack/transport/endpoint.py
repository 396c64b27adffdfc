"""One URL of a service: requests are sent to it, and what became of them tells its limiter and the service's pace.

A watch asks a server that accepts requests and never answers whether it lives.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

import aiohttp

from rewardstack.core.deadline import HEADER, Patience
from rewardstack.endpoints import VARIABLE
from rewardstack.errors import OverloadError, RejectedError, ReplyError, ServiceError, UnreachableError
from rewardstack.transport.attempt import LEAST, Attempt, OnceMore, Pace
from rewardstack.transport.exchange import exchange
from rewardstack.transport.http import CONNECT_TIMEOUT, shown
from rewardstack.transport.incident import SAID_AFTER, Incident
from rewardstack.transport.limiter import Limiter

SILENCE = 2.0
"""Seconds without any answer after which the endpoint is asked whether it lives."""
PING_TIMEOUT = 3.0
"""Seconds it has to say so; any HTTP reply will do."""

UNAUTHORIZED = 401
"""Says a server that does not know a key: where its service moves, it may be the next job's at the old address."""

NONE: Mapping[str, str] = MappingProxyType({})
Admit = Callable[[], Awaitable[None]]
"""Awaited before each attempt to send a message; what it raises ends them."""


class Message(NamedTuple):
    """What is sent, to whichever endpoint.

    Args:
        method: `GET` or `POST`.
        path: begins with a slash.
        body: JSON, or None.
        headers: beside the service's own.
        admit: says before each attempt whether it may be made; None where all may.
    """

    method: str
    path: str
    body: bytes | None = None
    headers: Mapping[str, str] = NONE
    admit: Admit | None = None


class Endpoint:
    """One of a service's URLs.

    Args:
        url: base URL.
        headers: sent with every request.
        ceiling: most requests in flight.
        session: that carries the requests.
        pace: of the service.
        is_awaited: whether anyone waits for the service.
        moves: whether the service may move; who refuses its key may then be another in its place.

    Raises:
        SettingsError: the environment names a proxy for it that is none for HTTP.
    """

    def __init__(
        self,
        url: str,
        headers: Mapping[str, str],
        ceiling: int,
        session: aiohttp.ClientSession,
        pace: Pace,
        is_awaited: Callable[[], bool],
        *,
        moves: bool = False,
    ) -> None:
        self.url = url
        self.limiter = Limiter(ceiling)
        self.incident = Incident(is_awaited)
        self.in_flight = 0
        self._named = shown(url)
        self._moves = moves
        self._headers = headers
        self._session = session
        self._pace = pace
        self._attempts: dict[Attempt, None] = {}
        self._unanswered = False
        self._heard_at = 0.0
        self._lived_at = 0.0
        self._lapsed = ""
        self._watch: asyncio.Task[None] | None = None
        self._round: asyncio.TimerHandle | None = None

    def cause(self) -> str:
        """Why what was sent here has no answer yet, as far as that is known; empty where all was answered."""
        known = [str(self.incident)] if self.incident.error is not None else []
        if self._attempts:
            known.append(self._silence())
        return "; ".join(known) or self._lapsed

    def _silence(self) -> str:
        since = next(iter(self._attempts)).sent_at
        count, seconds = len(self._attempts), time.monotonic() - since
        requests = f"{count} request{'s' if count > 1 else ''} of ours"
        if self._lived_at >= since:
            return f"{self._named} lives and is working on {requests}, the oldest sent {seconds:.1f} s ago"
        accepted = "accepted the connection and has" if seconds > CONNECT_TIMEOUT else "has"
        return f"{self._named} {accepted} sent nothing for {seconds:.1f} s; {requests} wait there"

    def _lapse(self) -> str:
        self._lapsed = self.cause()
        return self._lapsed

    async def ask(
        self, message: Message, patience: Patience, probe: bytes | None = None, once_more: OnceMore | None = None
    ) -> bytes:
        """The reply to a message that has its place in `in_flight`.

        Args:
            message: to send.
            patience: of all who wait for it.
            probe: a body that costs the service nothing; sent first where the endpoint took nothing of late.
            once_more: sends it elsewhere when it is stuck; None where it is sent only once.

        Raises:
            DeadlineError: nobody has the patience any more.
            OverloadError, UnreachableError: as `exchange` does, or the endpoint hangs.
            RejectedError, ReplyError: as `exchange` does.
            BudgetError: it is not admitted.
        """
        if probe is not None and self.limiter.pauses:
            await self._probe(message._replace(body=probe), patience)
        if message.admit is not None:
            await message.admit()
        try:
            reply = await self._send(message, patience, once_more)
        except RejectedError:
            self._found()
            raise
        self._found()
        return reply

    def _found(self) -> None:
        if self.incident.error is not None:
            self.incident.over()
        self._lapsed = ""
        self.limiter.succeeded()

    async def _probe(self, message: Message, patience: Patience) -> None:
        try:
            await self._send(message, patience)
        except (RejectedError, ReplyError):
            return  # it is there; what it thinks of real work the next request shows

    async def _send(self, message: Message, patience: Patience, once_more: OnceMore | None = None) -> bytes:
        left = patience.left()
        headers = {**self._headers, **message.headers, HEADER: str(max(1, int(left * 1000)))}
        attempt = Attempt(self._lapse, patience, self._pace, once_more)
        self._begin(attempt, left if once_more is None else min(left, LEAST))
        replied, answered, lives = False, True, True
        try:
            reply = await self._exchange(message, headers)
            replied = True
            return reply
        except asyncio.CancelledError:
            answered = lives = False
            if (other := attempt.outcome()) is None:
                raise
            return other
        except OverloadError as error:
            self.limiter.refused(attempt.sent_at, self.in_flight - 1, error.retry_after)
            raise
        except UnreachableError:
            lives = False
            self.limiter.unreachable()
            raise
        finally:
            attempt.end(replied=replied)
            if lives:
                self._lived_at = time.monotonic()
            self._end(attempt, answered=answered)

    async def _exchange(self, message: Message, headers: Mapping[str, str]) -> bytes:
        try:
            return await exchange(self._session, message.method, self.url + message.path, message.body, headers)
        except RejectedError as error:
            if not self._moves or error.status != UNAUTHORIZED:
                raise
            raise UnreachableError(f"{error}; its key is not the one that {VARIABLE} has for it") from error

    def _begin(self, attempt: Attempt, look_in: float) -> None:
        """Watches an attempt, which is interrupted when the endpoint turns out to hang."""
        if not self._attempts:
            self._heard_at = time.monotonic()
        self._attempts[attempt] = None
        self._go_round_in(look_in)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_silence())

    def _end(self, attempt: Attempt, *, answered: bool) -> None:
        """Watches an attempt no longer, which has ended with an answer of any kind or without."""
        del self._attempts[attempt]
        self._unanswered = not answered
        if answered:
            self._heard_at = time.monotonic()

    def _go_round_in(self, seconds: float) -> None:
        """Looks at all attempts then, if not before: one timer for all costs less than one each."""
        loop = asyncio.get_running_loop()
        if self._round is not None and self._round.when() <= loop.time() + seconds:
            return
        if self._round is not None:
            self._round.cancel()
        self._round = loop.call_later(seconds, self._go_round)

    def _go_round(self) -> None:
        self._round = None
        if self._attempts:
            self._go_round_in(min([attempt.look() for attempt in list(self._attempts)]))

    async def _watch_silence(self) -> None:
        while self._attempts or self._unanswered:
            wait = self._heard_at + SILENCE - time.monotonic()
            if wait > 0:
                await asyncio.sleep(wait)
                continue
            asked_at, self._unanswered = time.monotonic(), False
            if (lives := await self._lives()) or self._heard_at > asked_at:
                self._heard_at = time.monotonic()
                self._lived_at = self._heard_at if lives else self._lived_at
                continue
            hangs = UnreachableError(f"{self._named}: accepts requests and does not answer")
            self.incident.note(hangs, self._heard_at)
            self.limiter.unreachable(hangs=True)
            for attempt in list(self._attempts):
                attempt.interrupt(hangs)
            return

    async def _lives(self) -> bool:
        silent = UnreachableError(f"{self._named}: no answer even to GET /health")
        noting = asyncio.get_running_loop().call_later(SAID_AFTER - SILENCE, self.incident.note, silent, self._heard_at)
        try:
            await asyncio.wait_for(exchange(self._session, "GET", f"{self.url}/health", None, {}), PING_TIMEOUT)
        except (asyncio.TimeoutError, UnreachableError):
            return False
        except ServiceError:
            pass  # whatever it answers, it lives
        finally:
            noting.cancel()
        if self.incident.error is silent:
            self.incident.over()
        return True

    async def is_back(self, seconds: float) -> bool:
        """Whether it answers anything within these seconds, where it was away; it then takes requests at once."""
        try:
            await asyncio.wait_for(exchange(self._session, "GET", f"{self.url}/health", None, {}), seconds)
        except asyncio.TimeoutError:
            return False
        except UnreachableError as error:
            if type(error) is not type(self.incident.error):  # else the request that failed says more than this one
                self.incident.note(error)
            return False
        except ServiceError:
            pass  # whatever it answers, it lives
        self.incident.over()
        self.limiter.resume()
        return True

    def close(self) -> None:
        """Ends the watch."""
        self.incident.over()
        for one in (self._watch, self._round):
            if one is not None:
                one.cancel()
