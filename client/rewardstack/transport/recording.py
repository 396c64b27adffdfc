"""Record requests and their replies, instead of sending them or besides: for `rewardstack explain`, and for tests."""

from __future__ import annotations

import time
from collections.abc import Mapping
from urllib.parse import urlsplit

from rewardstack.core.steps import Exchange, exchanges
from rewardstack.errors import ServiceError
from rewardstack.transport.message import HEALTH, Reply, to_error
from rewardstack.transport.service import Service

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


class RecordingService:
    """Records each request, but for probes of a server's health.

    Args:
        recording: receives the requests.
        service: sends the requests; None to send nothing.
        reply: body of all replies if nothing is sent.
    """

    def __init__(self, recording: Recording, service: Service | None, reply: bytes = b"") -> None:
        self._recording = recording
        self._service = service
        self._reply = reply

    async def send(self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]) -> Reply:
        """Record one request and its reply; see `Service.send`."""
        started, reply, error = time.monotonic(), Reply(url, 200, {}, self._reply), ""
        try:
            if self._service is not None:
                reply = await self._service.send(method, url, body, headers)
            error = str(to_error(reply)) if reply.status >= 300 else ""
            return reply
        except ServiceError as failure:
            error = str(failure)
            raise
        finally:
            path, elapsed = urlsplit(url).path, (time.monotonic() - started) * 1000
            if path != HEALTH.path:
                self._recording.add(Exchange(method, path, body or b"", b"" if error else reply.data, error, elapsed))
