"""Run slow clients, which send the rest of a request byte by byte, and clients that never read their replies."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from types import TracebackType

LITTLE = 4096
"""Receive buffer, in bytes, of a client that never reads."""
SEGMENT = 536
"""Maximum TCP segment size of such a client, in bytes; small segments also keep the server's send buffer small."""


class Dribble:
    """Clients that run in a `with` block; each one reconnects when the server ends its connection.

    Args:
        address: host and port of the server.
        heads: beginnings of requests, which the clients use in turn.
        clients: number of clients.
        pause: seconds between two bytes.
        reads: whether the clients read replies. Those that do not read do not notice a closed connection, so they
            never reconnect.
    """

    def __init__(
        self,
        address: tuple[str, int],
        heads: Sequence[bytes],
        clients: int,
        pause: float = 5.0,
        *,
        reads: bool = True,
    ) -> None:
        self.address, self.heads, self.clients, self.pause, self.reads = address, heads, clients, pause, reads
        self._stop = threading.Event()
        self._there = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> Dribble:
        """Start the clients and return when all have tried to connect."""
        self._thread.start()
        assert self._there.wait(240)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        open_ones: dict[int, socket.socket] = {}
        with selectors.DefaultSelector() as selector:
            while not self._stop.is_set():
                for number in range(self.clients):
                    if number not in open_ones:
                        self._connect(number, open_ones, selector)
                self._there.set()
                end = time.monotonic() + self.pause
                while not self._stop.is_set() and (left := end - time.monotonic()) > 0:
                    self._hear(open_ones, selector, min(left, 0.2))
                for client in open_ones.values():
                    with contextlib.suppress(OSError):
                        client.send(b"1")
        for client in open_ones.values():
            client.close()

    def _connect(self, number: int, open_ones: dict[int, socket.socket], selector: selectors.BaseSelector) -> None:
        with contextlib.suppress(OSError):
            client = open_ones[number] = self._connection()
            if self.reads:
                selector.register(client, selectors.EVENT_READ, number)
            client.sendall(self.heads[number % len(self.heads)])
            client.setblocking(False)

    def _connection(self) -> socket.socket:
        client = socket.socket()
        client.settimeout(5)
        if not self.reads:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, LITTLE)
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, SEGMENT)
        client.connect(self.address)
        return client

    def _hear(self, open_ones: dict[int, socket.socket], selector: selectors.BaseSelector, seconds: float) -> None:
        """Read replies for some seconds, and drop the connections that the server has ended."""
        for key, _ in selector.select(seconds):
            client = open_ones[key.data]
            try:
                ended = not client.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                ended = True
            if ended:
                selector.unregister(client)
                open_ones.pop(key.data).close()
