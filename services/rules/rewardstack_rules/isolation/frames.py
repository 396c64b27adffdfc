"""Frames: the messages between server processes, the supervisor and its children.

A frame has a header (length of the body: 4 bytes, kind: 1, id: 8, seconds: 8, tenant: 16; network byte order) and a
JSON body. The body escapes non-ASCII characters, so that lone surrogates survive. The supervisor forwards bodies
unparsed.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Any, NamedTuple

HEADER = struct.Struct("!IBQd16s")
NO_TENANT = bytes(16)


class Kind(IntEnum):
    """The meaning of a frame, and its direction."""

    TASK = 1  # server process to supervisor to child: run a task; `seconds`: how long it may run
    DROP = 2  # server process to supervisor: cancel the task with this id
    STATS = 3  # server process to supervisor: return the counts; also the kind of the reply
    RESULT = 4  # child to supervisor to server process: the result of a task
    LAST = 5  # child to supervisor: a result, after which the child must be replaced
    READY = 6  # child to supervisor: the child accepts tasks; `id`: its process id
    QUICK_TASK = 7  # server process to supervisor: like TASK, but stop the task once it counts as slow
    PROGRESS = 8  # child to supervisor: how far the task is; supervisor to child: how far the next TASK was


class FrameError(Exception):
    """Raised for a frame that is invalid or larger than the limit."""


class Frame(NamedTuple):
    """One message.

    Args:
        kind: the meaning of the message.
        id: id of the task, or of the process in a `READY` frame; 0 for none.
        body: JSON; empty for none.
        seconds: how long a task may run; 0 for other frames.
        tenant: owner of the task, as 16 bytes.
    """

    kind: Kind
    id: int = 0
    body: bytes = b""
    seconds: float = 0.0
    tenant: bytes = NO_TENANT

    def encode(self) -> bytes:
        """Return the frame as bytes."""
        return HEADER.pack(len(self.body), self.kind, self.id, self.seconds, self.tenant) + self.body


def dump(value: Any) -> bytes:
    """Return a value as the body of a frame.

    Raises:
        TypeError, ValueError, RecursionError: the value is not JSON.
    """
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def load(body: bytes) -> Any:
    """Return the value that `dump` wrote."""
    return json.loads(body)


def _parse(header: bytes | bytearray, limit: int) -> tuple[int, Frame]:
    """Return the length of the body that follows a header, and the frame without its body."""
    length, kind, ident, seconds, tenant = HEADER.unpack_from(header)
    if length > limit:
        raise FrameError(f"a frame of {length} bytes is over the limit of {limit}")
    try:
        return length, Frame(Kind(kind), ident, b"", seconds, tenant)
    except ValueError as error:
        raise FrameError(f"a frame of unknown kind {kind}") from error


class FrameReader:
    """Splits a byte stream into frames.

    Args:
        limit: maximum size of a body, in bytes.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that these bytes complete.

        Raises:
            FrameError: the stream is invalid.
        """
        buffer = self._buffer
        buffer += data
        while len(buffer) >= HEADER.size:
            length, frame = _parse(buffer, self._limit)
            end = HEADER.size + length
            if len(buffer) < end:
                return
            body = bytes(buffer[HEADER.size : end])
            del buffer[:end]
            yield frame._replace(body=body)


def receive(sock: socket.socket, limit: int) -> Frame | None:
    """Return the next frame from a blocking socket; None if the peer has closed the connection.

    Raises:
        FrameError: the frame is invalid.
        OSError: the connection broke.
    """
    header = _receive_exactly(sock, HEADER.size)
    if header is None:
        return None
    length, frame = _parse(header, limit)
    body = _receive_exactly(sock, length)
    return None if body is None else frame._replace(body=body)


def _receive_exactly(sock: socket.socket, size: int) -> bytes | None:
    chunks = []
    while size:
        chunk = sock.recv(min(size, 1 << 20))
        if not chunk:
            return None
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)
