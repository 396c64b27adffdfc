"""Clients that send the beginning of a request, and from then on a byte now and then, or never read a reply."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
import time
from collections.abc import Sequence
from types import TracebackType

LITTLE = 4096
"""Bytes of a reply that one who never reads has room for."""
SEGMENT = 536
"""Bytes of a segment to such a client; a sender makes room for so many segments."""


class Dribble:
    """So many clients; each whose connection is ended makes another. They are gone when the block is left.

    Args:
        address: host and port of the server.
        heads: what they begin with, in turn.
        clients: how many there are.
        pause: seconds between two bytes.
        reads: whether they read the answers; those who do not never reconnect.
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
        """Returns when all are there."""
        self._thread.start()
        assert self._there.wait(60)
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
        """Reads what they are answered, and lets those go that are ended."""
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
