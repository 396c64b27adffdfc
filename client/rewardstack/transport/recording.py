"""Records requests and their replies for `rewardstack explain`."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.steps import Exchange, exchanges
from rewardstack.errors import ServiceError
from rewardstack.transport.endpoint import Message
from rewardstack.transport.endpoint_pool import EndpointPool

MOST_BYTES = 2**23
"""Maximum total size of the recorded bodies, in bytes: many votes repeat the same long text."""


class Recording:
    """The exchanges of one explanation, in the order in which they ended.

    Args:
        most: maximum total size of the bodies in bytes; bodies beyond it are not recorded.
    """

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._exchanges: list[Exchange] = []
        self._room = most
        self.pool = partial(_RecordedPool, self)
        """Creates an `EndpointPool` whose exchanges are recorded here."""

    def keep(self, exchange: Exchange) -> None:
        """Record an exchange, without its bodies if they would exceed the maximum size."""
        size = len(exchange.sent) + len(exchange.received)
        if size > self._room:
            exchange = exchange._replace(sent=b"", received=b"")
        else:
            self._room -= size
        self._recorded().append(exchange)

    def take(self) -> list[Exchange]:
        """Remove and return the exchanges recorded since the last call, of the current part of a composite."""
        recorded = self._recorded()
        taken = recorded[:]
        recorded.clear()
        return taken

    def _recorded(self) -> list[Exchange]:
        own = exchanges.get()
        return self._exchanges if own is None else own


class _RecordedPool(EndpointPool):
    def __init__(self, recording: Recording, *args: Any) -> None:
        super().__init__(*args)
        self._recording = recording

    async def ask(self, message: Message, deadline: SharedDeadline) -> Any:
        started, reply, why = time.monotonic(), b"", ""

        def read(data: bytes) -> Any:
            nonlocal reply
            reply = data
            return data if message.read is None else message.read(data)

        try:
            return await super().ask(message._replace(read=read), deadline)
        except ServiceError as error:
            why = str(error)
            raise
        finally:
            elapsed = (time.monotonic() - started) * 1000
            path = message.path.partition("?")[0]
            self._recording.keep(Exchange(message.method, path, message.body or b"", reply, why, elapsed))
