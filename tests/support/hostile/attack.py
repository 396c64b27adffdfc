"""Send one hostile request, given as bytes, and find what is wrong with the reply."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException, HTTPResponse
from random import Random
from typing import Any, NamedTuple
from urllib.parse import urlsplit

SECONDS = 60.0
"""Maximum seconds until a reply; long, because the machine may be busy."""
REFUSALS = frozenset({400, 401, 404, 405, 408, 409, 411, 413, 414, 415, 422, 429, 431, 501})
"""Statuses with which a server may refuse a hostile request."""
NAMED = frozenset({400, 413, 415, 422})
"""Statuses of refusals whose body must name the invalid field."""
TAKEN = (200, 202)
"""Statuses of accepted requests."""
BUSY = 503
RIGHT = 1.0
"""The right value of each neighbor of a hostile sample."""


class Attack(NamedTuple):
    """A hostile request.

    Args:
        kind: its kind, a key of `kinds.KINDS`.
        pieces: bytes to send, one piece after another.
        pause: seconds between two pieces.
        broken: whether it is incomplete or invalid HTTP: there may be no reply, or one from the HTTP server itself.
        neighbours: indices of samples in the same batch that must be scored as right.
        scored: whether the batch must be scored: a hostile value here affects only its own sample.
    """

    kind: str
    pieces: tuple[bytes, ...]
    pause: float = 0.0
    broken: bool = False
    neighbours: tuple[int, ...] = ()
    scored: bool = False

    def __str__(self) -> str:
        sent = b"".join(self.pieces)
        return f"{self.kind}: {sent[:600]!r}{' …' if len(sent) > 600 else ''} ({len(sent):,} bytes)"


Make = Callable[[Random], Attack]
"""A generator of requests of one kind."""


class Reply(NamedTuple):
    """A reply.

    Args:
        status: HTTP status.
        headers: headers with names in lower case.
        body: the whole body.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Return the parsed body; None if it is not JSON."""
        with suppress(ValueError, RecursionError):
            return json.loads(self.body)
        return None


def message(method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """Return an HTTP/1.1 request; Content-Length is added unless `headers` define the length.

    Args:
        method: HTTP method.
        target: path and query, which are not escaped.
        body: the body.
        headers: additional headers, which replace default headers with the same name.
    """
    given = {"Host": "rewardstack", "Connection": "close", "Content-Type": "application/json", **(headers or {})}
    if not {"Content-Length", "Transfer-Encoding"} & given.keys():
        given["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def send(url: str, attack: Attack) -> Reply | None:
    """Send a request and return the reply; None if the server closes the connection without a valid reply.

    Args:
        url: base URL of the server.
        attack: the request; sending stops when the server closes the connection.

    Raises:
        TimeoutError: nothing arrives for `SECONDS`.
    """
    address = urlsplit(url)
    with socket.create_connection((address.hostname or "", address.port or 80), SECONDS) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # the server replied before it read everything
            _write(connection, attack.pieces, attack.pause)
            if attack.broken:
                connection.shutdown(socket.SHUT_WR)
        with suppress(HTTPException, ConnectionResetError):
            return _read(connection)
    return None


def _write(connection: socket.socket, pieces: Sequence[bytes], pause: float) -> None:
    for at, piece in enumerate(pieces):
        if at:
            time.sleep(pause)
        connection.sendall(piece)


def _read(connection: socket.socket) -> Reply:
    with HTTPResponse(connection) as found:
        found.begin()
        return Reply(found.status, {name.lower(): value for name, value in found.getheaders()}, found.read())


def complaint(attack: Attack, reply: Reply | None) -> str:
    """Return what is wrong with the reply of any server; empty if nothing is.

    Args:
        attack: the request.
        reply: the reply, or None.
    """
    if reply is None:
        return "" if attack.broken else "no answer"
    if b"Traceback" in reply.body:
        return "a traceback in the answer"
    if reply.status == BUSY and "retry-after" not in reply.headers:
        return "503 without Retry-After"
    if reply.status >= 300 and reply.status not in (*REFUSALS, BUSY):
        return f"status {reply.status}"
    if attack.scored and reply.status not in (*TAKEN, BUSY):
        return f"status {reply.status} for the whole batch"
    values = _values(reply) if reply.status == 200 else None
    if values is not None and (wrong := [at for at in attack.neighbours if values[at : at + 1] != [RIGHT]]):
        return f"the samples {wrong} beside the hostile one are not {RIGHT}"
    return ""


def unclear(attack: Attack, reply: Reply | None) -> str:
    """Return why a reward server's refusal of valid HTTP is unclear; empty if it is clear or not a refusal.

    Args:
        attack: the request.
        reply: the reply, or None.
    """
    if reply is None or attack.broken or reply.status < 300:
        return ""
    said = reply.json()
    if not isinstance(said, dict) or not isinstance(said.get("error"), str) or "field" not in said:
        return "the refusal is no JSON with error and field"
    return "the refusal names no field" if reply.status in NAMED and not said["field"] else ""


def _values(reply: Reply) -> list[Any] | None:
    """Return the values of a batch; None if the reply has none."""
    said = reply.json()
    if not isinstance(said, dict):
        return None
    if "scores" in said and "rewards" not in said:
        return [one["value"] for one in said["scores"]]
    rewards: list[Any] | None = said.get("rewards")
    return rewards
