"""Requests kept with their replies, so that it can be explained what was said to whom."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.steps import Exchange
from rewardstack.errors import ServiceError
from rewardstack.transport.endpoint import Message
from rewardstack.transport.endpoint_pool import EndpointPool


class Recording:
    """The exchanges of one explanation, in the order in which they ended."""

    def __init__(self) -> None:
        self._exchanges: list[Exchange] = []
        self.pool = partial(_RecordedPool, self._exchanges)
        """Makes services as `EndpointPool` does, whose exchanges are kept here."""

    def take(self) -> list[Exchange]:
        """Those since the last time."""
        taken = self._exchanges[:]
        self._exchanges.clear()
        return taken


class _RecordedPool(EndpointPool):
    def __init__(self, exchanges: list[Exchange], *args: Any) -> None:
        super().__init__(*args)
        self._exchanges = exchanges

    async def _ask(
        self, message: Message, deadline: SharedDeadline, probe: bytes | None = None, *, hedged: bool = False
    ) -> bytes:
        started, reply, why = time.monotonic(), b"", ""
        try:
            reply = await super()._ask(message, deadline, probe, hedged=hedged)
        except ServiceError as error:
            why = str(error)
            raise
        finally:
            elapsed = (time.monotonic() - started) * 1000
            path = message.path.partition("?")[0]
            self._exchanges.append(Exchange(message.method, path, message.body or b"", reply, why, elapsed))
        return reply
