"""Frames: cut right wherever the stream is cut, and bounded."""

from __future__ import annotations

import asyncio
import socket

import pytest

from rewardstack_rules.isolation.frames import (
    HEADER,
    NO_TENANT,
    Frame,
    FrameError,
    FrameReader,
    Kind,
    dump,
    load,
    receive,
)
from tests.isolation.processes import MakeClient, directory_of

FRAMES = [
    Frame(Kind.TASK, 1, dump({"a": "\ud800"}), 2.5, b"t" * 16),
    Frame(Kind.READY),
    Frame(Kind.RESULT, 2**40, dump([1] * 50)),
]
STREAM = b"".join(frame.encode() for frame in FRAMES)


@pytest.mark.parametrize("size", [1, 2, 7, 21, 100, len(STREAM)])
def test_cut_anywhere(size: int) -> None:
    """However the stream arrives, the same frames come out."""
    reader = FrameReader(limit=1000)
    pieces = [STREAM[start : start + size] for start in range(0, len(STREAM), size)]
    assert [frame for piece in pieces for frame in reader.feed(piece)] == FRAMES


def test_blocking() -> None:
    """A blocking socket gives the frames one by one, and None at its end."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(STREAM)
        theirs.shutdown(socket.SHUT_WR)
        assert [receive(ours, 1000) for _ in range(4)] == [*FRAMES, None]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        (HEADER.pack(1001, Kind.TASK, 1, 1.0, NO_TENANT), "a frame of 1001 bytes is over the limit of 1000"),
        (HEADER.pack(0, 99, 1, 1.0, NO_TENANT), "a frame of unknown kind 99"),
    ],
)
def test_refused(header: bytes, message: str) -> None:
    """A frame beyond the bound, or of no known kind, is refused before its body is read."""
    with pytest.raises(FrameError, match=message):
        list(FrameReader(limit=1000).feed(header))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(header)
        with pytest.raises(FrameError, match=message):
            receive(ours, 1000)


@pytest.mark.parametrize("value", ["\ud800", {"é": [None, True, 1.5, "\x00"]}])
def test_body(value: object) -> None:
    """A body is ASCII and gives the value back."""
    assert load(dump(value)) == value
    assert dump(value).isascii()


async def test_foreign_client(make_client: MakeClient) -> None:
    """A client that sends the supervisor a giant frame loses its connection; all others keep working."""
    client = make_client(max_frame_bytes=1000, slow=3)
    with socket.socket(socket.AF_UNIX) as foreign:
        foreign.connect(str(directory_of(client) / "socket"))
        foreign.settimeout(5)
        foreign.sendall(HEADER.pack(2**31, Kind.TASK, 1, 1.0, NO_TENANT))
        assert await asyncio.to_thread(foreign.recv, 1) == b""
    assert await client.run({"with": 1}, timeout=60) == {"value": 1}
