"""A fake judge or embedding server that says which model it serves, but never replies to requests for scores."""

from __future__ import annotations

import json
import selectors
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

PAUSE = 0.05
ABOUT = json.dumps({"model_id": "silent", "data": [{"id": "silent"}]}).encode()
INFO = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b" % (len(ABOUT), ABOUT)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000000\r\n\r\n"


class SilentModel:
    """A server that replies to GET requests, and reads POST requests without a complete reply.

    Args:
        trickles: whether it sends the head of a reply to a POST request, and then spaces one by one.
        is_mute: whether it does not reply to GET requests, either.
    """

    def __init__(self, *, trickles: bool = False, is_mute: bool = False) -> None:
        self._trickles = trickles
        self._is_mute = is_mute
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
        self.port = self._listener.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._open: set[socket.socket] = set()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def waiting(self) -> int:
        """Return the number of open connections with a request that waits for its reply."""
        return len(self._open)

    def close(self) -> None:
        """Stop the server and close all connections."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector, self._listener:
            selector.register(self._listener, selectors.EVENT_READ)
            while not self._stop.is_set():
                for key, _ in selector.select(PAUSE):
                    if key.fileobj is self._listener:
                        client, _ = self._listener.accept()
                        selector.register(client, selectors.EVENT_READ)
                    else:
                        self._read(key.fileobj, selector)  # type: ignore[arg-type]
                for client in self._open if self._trickles else ():
                    with suppress(OSError):
                        client.send(b" ", socket.MSG_DONTWAIT)
            for client in self._open:
                client.close()

    def _read(self, client: socket.socket, selector: selectors.BaseSelector) -> None:
        data = b""
        with suppress(OSError):
            data = client.recv(2**16)
        if not data:
            selector.unregister(client)
            self._open.discard(client)
            client.close()
        elif data.startswith(b"GET ") and not self._is_mute:
            client.send(INFO)
        elif client not in self._open:
            self._open.add(client)
            if self._trickles:
                client.send(HEAD)


@contextmanager
def silent_model(*, trickles: bool = False, is_mute: bool = False) -> Iterator[SilentModel]:
    """Run a `SilentModel` for the time of the block; the arguments are those of `SilentModel`."""
    model = SilentModel(trickles=trickles, is_mute=is_mute)
    try:
        yield model
    finally:
        model.close()
