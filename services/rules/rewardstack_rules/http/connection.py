"""The connection of a request: limit how long it may be silent, and check whether its client is still there.

Slow clients are the gateway's task (nginx): it sends a request on once it has it all, and reads replies at once.
"""

from __future__ import annotations

import select
import socket
from collections.abc import Callable, Iterable
from typing import Any

from flask import Flask, request
from gunicorn.http.errors import ParseException  # type: ignore[import-untyped]

SILENCE_SECONDS = 30.0
"""Maximum seconds for which a thread waits for the next bytes of a body, or for a reply to be read."""
BROKEN_BODY = (OSError, ParseException)
"""Exceptions that reading a body raises if its client is gone or violates HTTP."""
Environ = dict[str, Any]
Application = Callable[[Environ, Callable[..., Any]], Iterable[bytes]]


def client_socket(wsgi: Environ) -> socket.socket | None:
    """Return the connection of a request; None if the application was called without one, as in tests."""
    return wsgi.get("gunicorn.socket")


def install(app: Flask) -> None:
    """Make requests of `app` fail whose client is silent for `SILENCE_SECONDS`."""

    def limit_silence() -> None:
        if (client := client_socket(request.environ)) is not None:
            client.settimeout(SILENCE_SECONDS)

    app.before_request(limit_silence)


def client_is_there() -> Callable[[], bool]:
    """Return a function that checks whether the client of the current request is still connected.

    If the application was called without a connection, as in tests, the function returns True.
    """
    client = client_socket(request.environ)
    return lambda: client is None or not _is_gone(client)


def _is_gone(client: socket.socket) -> bool:
    """Return whether a client has closed its connection, or at least its own sending side."""
    try:
        poller = select.poll()
        poller.register(client, select.POLLIN)
        return bool(poller.poll(0)) and not client.recv(1, socket.MSG_PEEK)
    except (OSError, ValueError):
        return True
