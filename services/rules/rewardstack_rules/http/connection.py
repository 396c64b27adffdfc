"""Client connections that limit how long threads wait for slow clients.

A thread that waits for a slow client must hold a slot. If there are at least three threads, there are fewer slots than
threads, so other clients are always answered. Each client must keep a minimum rate, so that every wait ends.

After a reply, the rest of the request is read, even if the request was refused. Closing a connection with unread bytes
would reset the connection, and the client could lose the reply (RFC 9112, section 9.6).
"""

from __future__ import annotations

import contextlib
import errno
import math
import select
import socket
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from itertools import chain
from threading import Semaphore
from typing import IO, Any, TypeVar

from flask import Flask
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from werkzeug.exceptions import HTTPException
from werkzeug.wsgi import ClosingIterator, get_input_stream

from rewardstack.errors import OverloadError
from rewardstack_rules.http.errors import ApiError

FAST_RATE = 2**20
"""A rate in bytes per second. Waiting for a client that has at least this rate needs no slot."""
SILENCE = 1.0
"""Maximum seconds of a single wait without a slot, even if the client's rate is at least `FAST_RATE`."""
WINDOW = 10.0
"""Seconds of waiting over which the minimum rate is measured."""
MIN_RATE = 16 * 1024
"""The minimum rate of a client, in bytes per second."""

BROKEN_BODY = (OSError, ParseException)
"""Exceptions that reading a body raises if its client is gone or violates HTTP."""
SOCKETS = ("gunicorn.socket", "werkzeug.socket")
"""WSGI environment keys under which servers store the client's connection."""
DRAIN_SECONDS = 10.0
"""Maximum seconds for reading the rest of a request after its reply."""
LINGER_SECONDS = 1.0
"""Maximum seconds for reading a connection after its last reply, before it is closed."""
CHUNK = 2**20

T = TypeVar("T")
Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


class SlowClientError(ApiError):
    """Raised if a client is below the minimum rate, or if the rest of an answered request does not arrive in time."""

    def __init__(self) -> None:
        super().__init__(408, f"the request arrives too slowly; send at least {MIN_RATE} bytes per second", "body")


class ClientSlots:
    """Slots for threads that wait for slow clients.

    If there are at least three threads, one of them is always free. With fewer, slow clients can occupy all threads.

    Args:
        threads: number of threads that answer requests.
        lend: returns a context manager within which the current thread counts as free. The default context manager
            does nothing.
    """

    def __init__(self, threads: int, lend: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext) -> None:
        self.lend = lend
        self.slow = Semaphore(max(1, threads // 2))
        """Slots for reading a request and sending its reply."""
        self.refused = Semaphore(max(1, threads // 4))
        """Slots for reading the rest of a request after its reply."""


class PacedSocket(socket.socket):
    """A client's connection. Reading and writing fail if the client is too slow.

    Args:
        accepted: the accepted connection; this object replaces it.
        slots: the slots of this process.
    """

    def __init__(self, accepted: socket.socket, slots: ClientSlots) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, accepted.detach())
        self._places = slots
        self.start_request()

    def start_request(self, received: int = 0, *, may_wait: bool = True) -> None:
        """Reset the limits for a new request.

        Args:
            received: number of bytes of the request that have already arrived.
            may_wait: whether to wait for the client at all.
        """
        self._slot, self._end = self._places.slow, math.inf
        self._waited, self._transferred = 0.0, received
        self._may_wait = may_wait

    def refuse(self, seconds: float) -> None:
        """Limit further reading to `seconds`. Call this when the request has been answered."""
        self._slot, self._end = self._places.refused, time.monotonic() + seconds

    def lend_thread(self) -> AbstractContextManager[None]:
        """Return a context manager within which the thread of the current request counts as free."""
        return self._places.lend()

    def is_gone(self) -> bool:
        """Return whether the client has closed the connection, or at least its own sending side."""
        try:
            return not super().recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True

    def recv_now(self, size: int) -> bytes:
        """Return the bytes that have arrived, without waiting.

        Raises:
            BlockingIOError: nothing has arrived.
        """
        return super().recv(size, socket.MSG_DONTWAIT)

    def recv(self, size: int, flags: int = 0) -> bytes:
        """Receive like `socket.recv`, but require the minimum rate.

        Raises:
            SlowClientError: the client is too slow.
            OverloadError: waiting for the client needs a slot, and all slots are in use.
        """
        data = self._receive(lambda: socket.socket.recv(self, size, flags | socket.MSG_DONTWAIT))
        self._transferred += len(data)
        return data

    def recv_into(self, buffer: Any, nbytes: int = 0, flags: int = 0) -> int:
        """Receive like `socket.recv_into`, but require the minimum rate. Raises the same errors as `recv`."""
        count = self._receive(lambda: socket.socket.recv_into(self, buffer, nbytes, flags | socket.MSG_DONTWAIT))
        self._transferred += count
        return count

    def send(self, data: Any, flags: int = 0) -> int:
        """Send like `socket.send`, but require the minimum rate.

        Raises:
            BrokenPipeError: the client reads too slowly, or waiting for it needs a slot and all slots are in use.
        """
        while True:
            try:
                count = super().send(data, flags | socket.MSG_DONTWAIT)
            except BlockingIOError:
                self._wait_to_send()
            else:
                self._transferred += count
                return count

    def sendall(self, data: Any, flags: int = 0) -> None:
        """Send like `socket.sendall`, but require the minimum rate. Raises the same errors as `send`."""
        left = memoryview(data).cast("B")
        while left:
            left = left[self.send(left, flags) :]

    def _receive(self, receive: Callable[[], T]) -> T:
        while time.monotonic() < self._end:
            try:
                return receive()
            except BlockingIOError:
                self._wait(select.POLLIN)
        raise SlowClientError

    def _wait_to_send(self) -> None:
        try:
            self._wait(select.POLLOUT)
        except (SlowClientError, OverloadError) as error:
            raise BrokenPipeError(errno.EPIPE, "the client does not read its reply") from error

    def _wait(self, event: int) -> None:
        if self._may_wait and self._wait_until_ready(event, min(self._transferred / FAST_RATE, self._waited + SILENCE)):
            return
        if not (self._may_wait and self._slot.acquire(blocking=False)):
            raise OverloadError("too many clients are sending slowly; try again")
        try:
            while not self._wait_until_ready(event, WINDOW):
                if self._transferred < WINDOW * MIN_RATE:
                    raise SlowClientError
                self._waited, self._transferred = 0.0, 0
        finally:
            self._slot.release()

    def _wait_until_ready(self, event: int, seconds: float) -> bool:
        """Wait until the socket is ready, and return whether it is.

        The wait ends at the latest when all waits in the current window together have taken `seconds`, or when the time
        that `refuse` has set is over.
        """
        started = time.monotonic()
        left = max(0.0, min(seconds - self._waited, self._end - started))
        poller = select.poll()
        poller.register(self, event)
        is_ready = bool(poller.poll(1000 * left))
        self._waited += time.monotonic() - started
        return is_ready


def client_socket(wsgi: Environ) -> PacedSocket | None:
    """Return the connection of a request; None if the application was called without one, as in tests."""
    client = next((wsgi[name] for name in SOCKETS if name in wsgi), None)
    return client if isinstance(client, PacedSocket) else None


def install(app: Flask) -> None:
    """Make `app` read the rest of every request after its reply, for at most `DRAIN_SECONDS`."""
    setattr(app, "wsgi_app", _drain_requests(app.wsgi_app))  # noqa: B010, as Flask documents it; types forbid it


def _drain_requests(application: Application) -> Application:
    def run(wsgi: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        client = client_socket(wsgi)
        body = wsgi["wsgi.input"] = get_input_stream(wsgi)
        wsgi["wsgi.input_terminated"] = True  # the stream ends where the body does
        reply: Any = application(wsgi, start_response)
        return ClosingIterator(chain(reply, _drain(body, client)), reply.close)

    return run


def _drain(body: IO[bytes], client: PacedSocket | None) -> Iterator[bytes]:
    """Return an iterator without items that reads the rest of a request. It can be chained after the reply."""
    yield from ()
    if client is not None:
        client.refuse(DRAIN_SECONDS)
        with contextlib.suppress(*BROKEN_BODY, HTTPException, SlowClientError, OverloadError):
            while body.read(CHUNK):
                pass


def linger(client: PacedSocket) -> None:
    """Stop sending on a connection, and discard incoming data for at most `LINGER_SECONDS`."""
    client.refuse(LINGER_SECONDS)
    with contextlib.suppress(OSError, SlowClientError, OverloadError):
        client.shutdown(socket.SHUT_WR)
        while client.recv(CHUNK):
            pass
