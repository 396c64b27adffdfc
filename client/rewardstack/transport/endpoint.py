"""One URL of a service: what is in flight to it, its limiter, and a watch for servers that accept and never answer."""

from __future__ import annotations

import asyncio
import logging
import time

import aiohttp

from rewardstack.errors import ServiceError, UnreachableError
from rewardstack.transport.attempt import Attempt
from rewardstack.transport.http import exchange
from rewardstack.transport.limiter import Limiter

SILENCE = 2.0
"""Seconds without any answer after which the endpoint is asked whether it lives."""
PING_TIMEOUT = 3.0
"""Seconds it has to say so; any HTTP reply will do."""

log = logging.getLogger(__name__)


class Endpoint:
    """One of a service's URLs.

    Args:
        url: base URL.
        ceiling: most requests in flight.
        session: for the watch's own requests.
    """

    def __init__(self, url: str, ceiling: int, session: aiohttp.ClientSession) -> None:
        self.url = url
        self.limiter = Limiter(ceiling)
        self.in_flight = 0
        self.trouble: UnreachableError | None = None
        self._session = session
        self._attempts: set[Attempt] = set()
        self._unanswered = False
        self._heard_at = 0.0
        self._watch: asyncio.Task[None] | None = None
        self._round: asyncio.TimerHandle | None = None

    def unreachable(self, error: UnreachableError) -> None:
        """Notes that there is no connection; logged once an outage, for who waits hears of it at the deadline only."""
        if self.trouble is None:
            log.warning("%s; it is tried again until the deadline", error)
        self.trouble = error

    def found(self) -> None:
        """Notes that the endpoint answered."""
        self.trouble = None
        self.limiter.succeeded()

    def begin(self, attempt: Attempt) -> None:
        """Watches an attempt that is sent to the endpoint; it is interrupted when the endpoint turns out to hang."""
        if not self._attempts:
            self._heard_at = time.monotonic()
        self._attempts.add(attempt)
        self._go_round_in(attempt.due_in())
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_silence())

    def end(self, attempt: Attempt, *, answered: bool) -> None:
        """Watches an attempt no longer, which has ended with an answer of any kind or without."""
        self._attempts.discard(attempt)
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
            if await self._lives() or self._heard_at > asked_at:
                self._heard_at = time.monotonic()
                continue
            log.warning("%s accepts requests and does not answer; asking elsewhere", self.url)
            self.limiter.unreachable(hangs=True)
            for attempt in list(self._attempts):
                attempt.interrupt(UnreachableError(f"{self.url}: accepts requests and does not answer"))
            return

    async def _lives(self) -> bool:
        try:
            await asyncio.wait_for(exchange(self._session, "GET", f"{self.url}/health", None, {}), PING_TIMEOUT)
        except (asyncio.TimeoutError, UnreachableError):
            return False
        except ServiceError:
            return True
        return True

    def close(self) -> None:
        """Ends the watch."""
        for one in (self._watch, self._round):
            if one is not None:
                one.cancel()
