"""Reads what a refused request still sends, so that its sender comes to read why it was refused.

A server that closes a connection with bytes unread resets it, and the sender loses the reply (RFC 9112, section 9.6).
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, Any

from flask import Flask
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from werkzeug.exceptions import HTTPException
from werkzeug.wsgi import ClosingIterator, get_input_stream

from rewardstack.errors import OverloadError
from rewardstack_rules.http.pacing import PacedSocket, SlowClientError

BROKEN_BODY = (OSError, ParseException)
"""What reading a body raises whose sender is gone, or wrote what is no HTTP."""
SOCKETS = ("gunicorn.socket", "werkzeug.socket")
"""Names under which a server puts the client's connection into the environment of a request."""
DRAIN_SECONDS = 10.0
LINGER_SECONDS = 1.0
CHUNK = 2**20

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def install(app: Flask) -> None:
    """Has every request of `app` read to its end, or for `DRAIN_SECONDS`, once it is answered."""
    setattr(app, "wsgi_app", _drained(app.wsgi_app))  # noqa: B010, Flask's own way of wrapping itself; types forbid it


def _drained(application: Application) -> Application:
    def run(wsgi: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        client = next((wsgi[name] for name in SOCKETS if name in wsgi), None)
        body = wsgi["wsgi.input"] = get_input_stream(wsgi)
        wsgi["wsgi.input_terminated"] = True  # the stream ends where the body does
        reply: Any = application(wsgi, start_response)
        return ClosingIterator(chain(reply, _drain(body, client)), reply.close)

    return run


def _drain(body: IO[bytes], client: object) -> Iterator[bytes]:
    """The last piece of a reply, which is empty."""
    yield from ()
    if isinstance(client, PacedSocket):
        client.refuse(DRAIN_SECONDS)
        with contextlib.suppress(*BROKEN_BODY, HTTPException, SlowClientError, OverloadError):
            while body.read(CHUNK):
                pass


def linger(client: PacedSocket) -> None:
    """Reads for `LINGER_SECONDS` what still comes on a connection whose last reply is written."""
    client.refuse(LINGER_SECONDS)
    with contextlib.suppress(OSError, SlowClientError, OverloadError):
        client.shutdown(socket.SHUT_WR)
        while client.recv(CHUNK):
            pass
