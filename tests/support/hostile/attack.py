"""One hostile request: the bytes that are sent, what comes back, and what is wrong with that."""

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
"""That an answer may take at most: a busy machine has others to serve."""
REFUSALS = frozenset({400, 401, 404, 405, 408, 409, 411, 413, 414, 415, 422, 429, 431, 501})
NAMED = frozenset({400, 413, 415, 422})
"""Refusals that name what is to blame."""
TAKEN = (200, 202)
BUSY = 503
RIGHT = 1.0
"""The value of each neighbour of a hostile sample."""


class Attack(NamedTuple):
    """A request.

    Args:
        kind: of it.
        pieces: what is written, one after the other.
        pause: seconds between two pieces.
        broken: whether it is no whole HTTP, so that it may have no answer, or one of the HTTP server's own.
        neighbours: places of samples, among those of its batch, that are right whatever becomes of the others.
        scored: whether the batch has scores whatever the hostile sample is: it is that sample's outcome alone.
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
"""What makes a request of some kind."""


class Reply(NamedTuple):
    """What came back.

    Args:
        status: of HTTP.
        headers: names in lower case.
        body: all of it.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """The body, None where it is no JSON."""
        with suppress(ValueError, RecursionError):
            return json.loads(self.body)
        return None


def message(method: str, target: str, body: bytes = b"", headers: Mapping[str, str] | None = None) -> bytes:
    """A request as HTTP/1.1 writes it, with the length of its body unless the headers say how long it is.

    Args:
        method: of HTTP.
        target: path and query, as they are.
        body: as it is.
        headers: beside the host's; one that is given replaces that of the same name.
    """
    given = {"Host": "rewardstack", "Connection": "close", "Content-Type": "application/json", **(headers or {})}
    if not {"Content-Length", "Transfer-Encoding"} & given.keys():
        given["Content-Length"] = str(len(body))
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join([*lines, "", ""]).encode() + body


def send(url: str, attack: Attack) -> Reply | None:
    """What a server answers; None where it closes the connection without a word.

    Args:
        url: of the server.
        attack: is sent whole, or for as long as the server reads it.

    Raises:
        TimeoutError: nothing comes for `SECONDS`.
    """
    address = urlsplit(url)
    with socket.create_connection((address.hostname or "", address.port or 80), SECONDS) as connection:
        with suppress(BrokenPipeError, ConnectionResetError):  # it has answered before it read all
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
    """What is wrong with an answer of any server; empty if nothing is.

    Args:
        attack: that was answered.
        reply: the answer.
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
    """What is wrong with how a reward server says no to whole HTTP; empty where nothing is.

    Args:
        attack: that was answered.
        reply: the answer.
    """
    if reply is None or attack.broken or reply.status < 300:
        return ""
    said = reply.json()
    if not isinstance(said, dict) or not isinstance(said.get("error"), str) or "field" not in said:
        return "the refusal is no JSON with error and field"
    return "the refusal names no field" if reply.status in NAMED and not said["field"] else ""


def _values(reply: Reply) -> list[Any] | None:
    """The values of a batch, None where the answer has none."""
    said = reply.json()
    if not isinstance(said, dict):
        return None
    if "scores" in said and "rewards" not in said:
        return [one["value"] for one in said["scores"]]
    rewards: list[Any] | None = said.get("rewards")
    return rewards
