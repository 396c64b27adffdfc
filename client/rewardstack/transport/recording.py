"""Requests kept with their replies, so that it can be explained what was said to whom."""

from __future__ import annotations

import time
from collections.abc import Awaitable
from functools import partial
from typing import Any

from rewardstack.core.steps import Exchange
from rewardstack.errors import ServiceError
from rewardstack.transport.endpoint_pool import EndpointPool

MOST_BYTES = 2**23
"""Of bodies that one explanation keeps: many votes on many references hold the same long text many times."""


class Recording:
    """The exchanges of one explanation, in the order in which they ended.

    Args:
        most: bytes of bodies that are kept; of further exchanges only the rest is.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._exchanges: list[Exchange] = []
        self._room = most
        self.pool = partial(_RecordedPool, self)
        """Makes services as `EndpointPool` does, whose exchanges are kept here."""

    def keep(self, exchange: Exchange) -> None:
        """Adds an exchange, its bodies as long as there is room for them."""
        size = len(exchange.sent) + len(exchange.received)
        if size > self._room:
            exchange = exchange._replace(sent=b"", received=b"")
        else:
            self._room -= size
        self._exchanges.append(exchange)

    def take(self) -> list[Exchange]:
        """Those since the last time."""
        taken = self._exchanges[:]
        self._exchanges.clear()
        return taken


class _RecordedPool(EndpointPool):
    def __init__(self, recording: Recording, *args: Any) -> None:
        super().__init__(*args)
        self._recording = recording

    async def get(self, path: str, *args: Any, **options: Any) -> bytes:
        return await self._recorded("GET", path, b"", super().get(path, *args, **options))

    async def post(self, path: str, body: bytes, *args: Any, **options: Any) -> bytes:
        return await self._recorded("POST", path, body, super().post(path, body, *args, **options))

    async def _recorded(self, method: str, path: str, body: bytes, work: Awaitable[bytes]) -> bytes:
        started, reply, why = time.monotonic(), b"", ""
        try:
            reply = await work
        except ServiceError as error:
            why = str(error)
            raise
        finally:
            elapsed = (time.monotonic() - started) * 1000
            self._recording.keep(Exchange(method, path.partition("?")[0], body, reply, why, elapsed))
        return reply
