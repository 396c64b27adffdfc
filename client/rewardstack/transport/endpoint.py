"""One URL of a service: what is in flight to it, its gate, and a watch for servers that accept and never answer."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine
from typing import Any

import aiohttp

from rewardstack.errors import ServiceError, UnreachableError
from rewardstack.transport.gate import Gate
from rewardstack.transport.http import exchange

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
        self.gate = Gate(ceiling)
        self.in_flight = 0
        self._session = session
        self._attempts: set[asyncio.Task[bytes]] = set()
        self._given_up: set[asyncio.Task[bytes]] = set()
        self._unanswered = False
        self._heard_at = 0.0
        self._watch: asyncio.Task[None] | None = None

    def start(self, request: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes]:
        """Starts an attempt; it ends as cancelled, and `check` raises, when the endpoint turns out to hang."""
        if not self._attempts:
            self._heard_at = time.monotonic()
        attempt = asyncio.create_task(request)
        self._attempts.add(attempt)
        attempt.add_done_callback(self._ended)
        if self._watch is None or self._watch.done():
            self._watch = asyncio.create_task(self._watch_silence())
        return attempt

    def _ended(self, attempt: asyncio.Task[bytes]) -> None:
        self._attempts.discard(attempt)
        self._unanswered = attempt.cancelled()
        if not attempt.cancelled():
            self._heard_at = time.monotonic()
            attempt.exception()

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
            self.gate.unreachable(hangs=True)
            self._given_up |= {attempt for attempt in self._attempts if attempt.cancel()}
            return

    def check(self, attempt: asyncio.Task[bytes]) -> None:
        """Raises UnreachableError if the endpoint hung in this attempt, which has ended as cancelled."""
        if attempt in self._given_up:
            self._given_up.discard(attempt)
            raise UnreachableError(f"{self.url}: accepts requests and does not answer") from None

    async def _lives(self) -> bool:
        try:
            await asyncio.wait_for(exchange(self._session, "GET", f"{self.url}/health", None, {}), PING_TIMEOUT)
        except (asyncio.TimeoutError, UnreachableError):
            return False
        except ServiceError:
            return True
        return True

    def close(self) -> None:
        """Ends the watch and every attempt."""
        for task in (self._watch, *self._attempts):
            if task is not None:
                task.cancel()
