"""Records requests and their replies for `rewardstack explain`."""

from __future__ import annotations

import time
from functools import partial
from typing import Any

from rewardstack.core.deadline import SharedDeadline
from rewardstack.core.steps import Exchange, exchanges
from rewardstack.errors import ServiceError
from rewardstack.transport.endpoint_pool import EndpointPool
from rewardstack.transport.message import Message

MAX_BYTES = 2**23
"""Maximum total size of the recorded bodies, in bytes. A limit is needed, because the requests for a judge's votes all
repeat the same long text."""


class Recording:
    """The requests and replies of one explanation, in the order in which they ended.

    Args:
        max_bytes: maximum total size of the bodies in bytes; bodies beyond it are not recorded.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._exchanges: list[Exchange] = []
        self._free_bytes = max_bytes
        self.pool = partial(_RecordedPool, self)
        """Creates an `EndpointPool` whose exchanges are recorded here."""

    def add(self, exchange: Exchange) -> None:
        """Record an exchange, without its bodies if they would exceed the maximum size."""
        size = len(exchange.sent) + len(exchange.received)
        if size > self._free_bytes:
            exchange = exchange._replace(sent=b"", received=b"")
        else:
            self._free_bytes -= size
        self._recorded().append(exchange)

    def take(self) -> list[Exchange]:
        """Remove and return the exchanges recorded since `take` was last called.

        Within a `Trace.substep`, such as a part of a composite route, these are only the exchanges of the substep.
        """
        recorded = self._recorded()
        taken = recorded[:]
        recorded.clear()
        return taken

    def _recorded(self) -> list[Exchange]:
        part_exchanges = exchanges.get()
        return self._exchanges if part_exchanges is None else part_exchanges


class _RecordedPool(EndpointPool):
    def __init__(self, recording: Recording, *args: Any) -> None:
        super().__init__(*args)
        self._recording = recording

    async def ask(self, message: Message, deadline: SharedDeadline) -> Any:
        started, reply, error_message = time.monotonic(), b"", ""

        def read(data: bytes) -> Any:
            nonlocal reply
            reply = data
            return data if message.read is None else message.read(data)

        try:
            return await super().ask(message._replace(read=read), deadline)
        except ServiceError as error:
            error_message = str(error)
            raise
        finally:
            elapsed = (time.monotonic() - started) * 1000
            path = message.path.partition("?")[0]
            self._recording.add(Exchange(message.method, path, message.body or b"", reply, error_message, elapsed))
