"""Reads what a refused request still sends, so that its sender comes to read why it was refused.

A server that closes a connection with bytes unread resets it, and the sender loses the reply (RFC 9112, section 9.6).
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable
from typing import IO, Any

from flask import Flask
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]
from werkzeug.exceptions import HTTPException
from werkzeug.wsgi import get_input_stream

BROKEN_BODY = (OSError, ParseException)
"""What reading a body raises whose sender is gone, or wrote what is no HTTP."""
DRAIN_SECONDS = 10.0
CHUNK = 2**20

Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def install(app: Flask) -> None:
    """Has every request of `app` read to its end, or for `DRAIN_SECONDS`, before it is answered."""
    setattr(app, "wsgi_app", _drained(app.wsgi_app))  # noqa: B010, Flask's own way of wrapping itself; types forbid it


def _drained(application: Application) -> Application:
    def run(wsgi: Environ, start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = wsgi["wsgi.input"] = get_input_stream(wsgi)
        wsgi["wsgi.input_terminated"] = True  # the stream ends where the body does
        reply = application(wsgi, start_response)
        with contextlib.suppress(*BROKEN_BODY, HTTPException):  # nobody is left to read the reply
            _drain(body)
        return reply

    return run


def _drain(body: IO[bytes]) -> None:
    end = time.monotonic() + DRAIN_SECONDS
    while body.read(CHUNK) and time.monotonic() < end:
        pass
